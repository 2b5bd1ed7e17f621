// Kfake runs a cluster of three brokers in one process. It implements Kafka's protocol without Apache Kafka's
// code. Its arguments are the ports of the brokers on 127.0.0.1.
package main

import (
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	var ports []int
	for _, arg := range os.Args[1:] {
		port, err := strconv.Atoi(arg)
		if err != nil {
			log.Fatalf("%s is no port", arg)
		}
		ports = append(ports, port)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(len(ports)), kfake.Ports(ports...))
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	<-ended
	cluster.Close()
}
