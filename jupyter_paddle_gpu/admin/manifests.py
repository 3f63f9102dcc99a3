"""`jupyter paddle-gpu manifests`: what a cluster's administrator makes once, for kubectl."""

from __future__ import annotations

import argparse
import json

from jupyter_paddle_gpu.placement.kubernetes.manifests import all_of


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "manifests", help="print what kernels on Kubernetes need there; give it to kubectl apply -f -"
    )
    parser.add_argument("--namespace", required=True, help="where kernels will run")
    parser.add_argument("--account", default="default", help="the service account of the Jupyter servers in it")
    parser.set_defaults(call=call)


def call(args: argparse.Namespace) -> int:
    items = all_of(args.namespace, args.account)
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))
    return 0
