// RUN: shard-opt %s --cpu-outline-parallel --verify-diagnostics

func.func private @kernel(%n: index) attributes {exec.kernel} {
  exec.parallel %i to %n grain 1 {
    // expected-error@+1 {{is inside another parallel loop}}
    exec.parallel %j to %n grain 1 {
    }
  }
  return
}
