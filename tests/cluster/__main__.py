"""`python3 -m tests.cluster up|down|status|images|prepare|pin`: a real Kubernetes on this machine, as root.

up        start one of two nodes and print its KUBECONFIG        down      end it and all that runs in it
status    its nodes                                              images    put the checkout into its image
prepare   build and fetch what a start needs, ahead of time      pin       write the modules of another --release
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.cluster import build, images, layers, plane
from tests.cluster.places import BY_HAND, ROOT, ClusterError, check_machine, install


def main() -> int:
    whole = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python3 -m tests.cluster", description=__doc__, formatter_class=whole)
    parser.add_argument("action", choices=("up", "down", "status", "images", "prepare", "pin"))
    parser.add_argument("--release", default=build.RELEASE, help="of Kubernetes (%(default)s)")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--project", type=Path, default=ROOT, help="the checkout that goes into the image")
    parser.add_argument("--tag", default="test", help="of the image")
    parser.add_argument("--install", action="store_true", help="let `prepare` install Debian packages")
    args = parser.parse_args()
    try:
        return act(args)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 2


def act(args: argparse.Namespace) -> int:
    """Do what the command line asks for; return the exit code."""
    if args.action == "down":
        plane.down(BY_HAND)
    elif args.action == "pin":
        print(build.pin(args.release))
    elif args.action == "status":
        config = os.environ.get("KUBECONFIG") or str(BY_HAND.kubeconfig)
        command = [str(build.kubeplane(args.release)), "kubectl", "--kubeconfig", config, "--request-timeout=5s"]
        return subprocess.run([*command, "get", "nodes", "-o", "wide"]).returncode
    else:
        if args.action == "prepare" and args.install:
            install()
        check_machine()
        if args.action == "images":
            print(images.load(BY_HAND, args.project, args.tag))
        elif args.action == "up":
            print(f"export KUBECONFIG={plane.up(build.kubeplane(args.release), BY_HAND, args.nodes)}")
        else:
            build.kubeplane(args.release)
            layers.prepare()
    return 0


if __name__ == "__main__":
    sys.exit(main())
