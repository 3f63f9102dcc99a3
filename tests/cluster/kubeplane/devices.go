package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kubelet "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// stock is what a node has of one resource. Its devices are names only: the kubelet counts them, containers are told
// theirs in an environment variable.
type stock struct {
	kubelet.UnimplementedDevicePluginServer
	resource string
	count    int
}

// parse reads NAME=COUNT.
func parse(text string) (*stock, error) {
	resource, number, _ := strings.Cut(text, "=")
	count, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s: not NAME=COUNT: %w", text, err)
	}
	return &stock{resource: resource, count: count}, nil
}

// plain is the resource's name without what a file's name cannot have.
func (s *stock) plain() string {
	return strings.NewReplacer("/", "-", ".", "-").Replace(s.resource)
}

func (s *stock) all() *kubelet.ListAndWatchResponse {
	listed := make([]*kubelet.Device, s.count)
	for i := range listed {
		listed[i] = &kubelet.Device{ID: fmt.Sprintf("%s-%d", s.plain(), i), Health: kubelet.Healthy}
	}
	return &kubelet.ListAndWatchResponse{Devices: listed}
}

// The kubelet's calls: what is there, and what a container gets.

func (*stock) GetDevicePluginOptions(context.Context, *kubelet.Empty) (*kubelet.DevicePluginOptions, error) {
	return new(kubelet.DevicePluginOptions), nil
}

func (s *stock) ListAndWatch(_ *kubelet.Empty, told kubelet.DevicePlugin_ListAndWatchServer) error {
	if err := told.Send(s.all()); err != nil {
		return err
	}
	<-told.Context().Done()
	return told.Context().Err()
}

func (s *stock) Allocate(_ context.Context, wanted *kubelet.AllocateRequest) (*kubelet.AllocateResponse, error) {
	given := make([]*kubelet.ContainerAllocateResponse, len(wanted.ContainerRequests))
	for i, one := range wanted.ContainerRequests {
		seen := strings.Join(one.DevicesIds, ",")
		given[i] = &kubelet.ContainerAllocateResponse{Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": seen}}
	}
	return &kubelet.AllocateResponse{ContainerResponses: given}, nil
}

// serve answers on the resource's socket in this folder until it fails.
func (s *stock) serve(folder string, failed chan<- error) error {
	path := filepath.Join(folder, s.plain()+".sock")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	socket, err := net.Listen("unix", path)
	if err == nil {
		answering := grpc.NewServer()
		kubelet.RegisterDevicePluginServer(answering, s)
		go func() { failed <- answering.Serve(socket) }()
	}
	return err
}

// offer tells the kubelet of this folder about each NAME=COUNT, and returns when one is served no more.
func offer(folder string, resources []string) error {
	node, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	failed := make(chan error)
	for _, text := range resources {
		own, err := parse(text)
		if err == nil {
			err = own.serve(folder, failed)
		}
		if err != nil {
			return err
		}
		told := kubelet.RegisterRequest{Version: kubelet.Version, Endpoint: own.plain() + ".sock", ResourceName: own.resource}
		if _, err = kubelet.NewRegistrationClient(node).Register(context.Background(), &told, grpc.WaitForReady(true)); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return <-failed
}
