# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Slurm of a few hosts for one command: each host is a network namespace of hosts.py, in which Slurm's daemons run in the foreground, with all their files in one folder. Nobody
else can reach them, so that they need no authentication. Tests call `srun`; the module itself is the program that runs on each host."""
import functools
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time

import hosts

DAEMONS = ("slurmctld", "slurmd")
# Slurm looks for its daemons in folders of administrators.
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


@functools.cache
def reason_not():
    """Why this machine cannot play a cluster of Slurm; empty if it can."""
    missing = [name for name in (*DAEMONS, "srun", "sinfo") if not shutil.which(name, path=PATH)]
    if missing:
        return f"no {', '.join(missing)} (slurmctld, slurmd and slurm-client of Debian)"
    return hosts.reason_not()


def configuration(count, folder):
    """Of `count` hosts h0, h1, ...; the first one is the controller."""
    user = pwd.getpwuid(os.getuid()).pw_name
    lines = {"ClusterName": "test", "SlurmctldHost": f"h0({hosts.address(0)})", "SlurmUser": user, "SlurmdUser": user,
             "AuthType": "auth/none", "CredType": "cred/none", "MailProg": "/bin/true", "StateSaveLocation": folder / "state",
             "SlurmdSpoolDir": folder / "spool.%n", "SlurmctldPidFile": folder / "slurmctld.pid", "SlurmdPidFile": folder / "%n.pid",
             "SlurmctldLogFile": folder / "slurmctld.log", "SlurmdLogFile": folder / "%n.log", "ProctrackType": "proctrack/pgid",
             "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
             "SelectType": "select/linear", "MessageTimeout": 60, "SchedulerType": "sched/builtin", "MpiDefault": "none"}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    # As few processors as each machine that can run this has.
    text += "".join(f"NodeName=h{host} NodeAddr={hosts.address(host)} CPUs=1 State=UNKNOWN\n" for host in range(count))
    return text + "PartitionName=all Nodes=ALL Default=YES State=UP\n"


def srun(folder, count, arguments, environment, timeout=3 * hosts.GUARD):
    """Runs `srun ARGUMENTS` on the first of `count` hosts. Returns what hosts.run_hosts says of it."""
    folder = pathlib.Path(folder)
    for name in ("state", *(f"spool.h{host}" for host in range(count))):
        (folder / name).mkdir(parents=True)
    (folder / "slurm.conf").write_text(configuration(count, folder))
    # The namespaces have no file system of cgroups, which slurmd would look for.
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{hosts.address(host)} h{host}\n" for host in range(count)))
    environment = {**environment, "SLURM_CONF": folder / "slurm.conf", "PATH": PATH}
    commands = [{"host": host, "command": [sys.executable, __file__, folder, count if host == 0 else 0, "srun", *arguments],
                 "env": environment} for host in range(count)]
    for command in commands:
        command["command"] = [str(word) for word in command["command"]]
    done = hosts.run_hosts(count, commands, timeout)[0]
    if done.status:
        logs = "".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in sorted(folder.glob("*.log")))
        raise AssertionError(f"srun on {count} hosts ended with {done.status}:\n{done.stderr[-4000:]}\n{logs}")
    return done


def idle_hosts():
    done = subprocess.run(["sinfo", "--noheader", "--states=idle", "--format=%D"], text=True, capture_output=True)
    return int(done.stdout.strip() or 0) if done.returncode == 0 else 0


def main(folder, count, *command):
    """On each host. The first one, which alone has a count, runs the command; its end ends all others."""
    folder, count = pathlib.Path(folder), int(count)
    subprocess.run(["mount", "--bind", folder / "hosts", "/etc/hosts"], check=True)
    with open(os.devnull, "w") as nothing:
        daemons = [subprocess.Popen([name, "-D"], stdout=nothing, stderr=nothing, start_new_session=True)
                   for name in (DAEMONS if count else DAEMONS[1:])]
    ended = folder / "ended"
    if not count:
        while not ended.exists() and daemons[0].poll() is None:
            time.sleep(0.05)
        return
    end = time.monotonic() + hosts.GUARD
    while idle_hosts() < count:
        if time.monotonic() > end:
            sys.exit("Slurm's hosts did not become idle")
        time.sleep(0.05)
    status = subprocess.run(command).returncode
    ended.touch()
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
