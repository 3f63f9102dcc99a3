package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1beta1 "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// offered is one resource whose devices are names only: the node counts them, containers are told theirs.
type offered struct {
	v1beta1.UnimplementedDevicePluginServer
	devices []*v1beta1.Device
}

func (o *offered) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (o *offered) ListAndWatch(_ *v1beta1.Empty, stream v1beta1.DevicePlugin_ListAndWatchServer) error {
	err := stream.Send(&v1beta1.ListAndWatchResponse{Devices: o.devices})
	if err == nil {
		<-stream.Context().Done()
	}
	return err
}

func (o *offered) Allocate(_ context.Context, asked *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	answer := &v1beta1.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		visible := map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}
		answer.ContainerResponses = append(answer.ContainerResponses, &v1beta1.ContainerAllocateResponse{Envs: visible})
	}
	return answer, nil
}

// offer registers each NAME=COUNT with the kubelet of this folder and serves for ever.
func offer(folder string, resources []string) error {
	for _, resource := range resources {
		name, text, _ := strings.Cut(resource, "=")
		count, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s: not NAME=COUNT: %w", resource, err)
		}
		if err := register(folder, name, count); err != nil {
			return fmt.Errorf("%s: %w", resource, err)
		}
	}
	select {}
}

func register(folder, name string, count int) error {
	plain := strings.NewReplacer("/", "-", ".", "-").Replace(name)
	served := &offered{}
	for i := range count {
		served.devices = append(served.devices, &v1beta1.Device{ID: fmt.Sprintf("%s-%d", plain, i), Health: v1beta1.Healthy})
	}
	socket := filepath.Join(folder, plain+".sock")
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, served)
	go server.Serve(listener)
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	request := &v1beta1.RegisterRequest{Version: v1beta1.Version, Endpoint: plain + ".sock", ResourceName: name}
	_, err = v1beta1.NewRegistrationClient(kubelet).Register(context.Background(), request, grpc.WaitForReady(true))
	return err
}
