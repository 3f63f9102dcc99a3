// kubeplane is the unmodified Kubernetes programs as one binary; its first argument chooses the program.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

var commands = map[string]func() *cobra.Command{
	"apiserver":   apiserver.NewAPIServerCommand,
	"controllers": controllers.NewControllerManagerCommand,
	"scheduler":   func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":     func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":     kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "name a program: etcd, devices, apiserver, controllers, scheduler, kubelet, kubectl")
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	switch program := os.Args[0]; program {
	case "etcd":
		etcdmain.Main(os.Args)
	case "devices":
		if err := offer(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		make, known := commands[program]
		if !known {
			fmt.Fprintln(os.Stderr, "there is no program", program)
			os.Exit(2)
		}
		os.Exit(cli.Run(make()))
	}
}
