"""A cluster: Pods that Kubernetes places and takes away; the agent is their first process."""
