// Drives a gRPC server on a Unix socket through grpc-go, as a Go program would, and says how long each call took.
//
// It takes the arguments and the request files of the load in ../load and writes the same samples. Requests are encoded
// already, and replies are not decoded: what is measured is grpc-go. Each request file is a channel, on which so many
// goroutines as there are streams make its requests in turn. Sixteen `#` in a request are replaced by a number that no
// other request has.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
)

const (
	callTimeout = 10 * time.Second
	numberPlace = "################"
)

type options struct {
	socket, wire, path string
	seconds, rate      float64
	streams, turns     int
	first              uint64
	samples, failures  string
}

// sample is a call that ended, in nanoseconds of the monotonic clock.
type sample struct{ began, ended int64 }

// outcome is what became of the calls of one goroutine.
type outcome struct{ answered, failed []sample }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	asked, files, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	channels := make([]*channel, len(files))
	for i, file := range files {
		if channels[i], err = open(asked.socket, file); err != nil {
			return err
		}
	}
	total := drive(asked, channels)
	if err := write(asked.samples, total.answered); err != nil {
		return err
	}
	if err := write(asked.failures, total.failed); err != nil {
		return err
	}
	fmt.Println(0, nanos(unix.CLOCK_PROCESS_CPUTIME_ID))
	return nil
}

func parse(arguments []string) (options, []string, error) {
	var asked options
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&asked.socket, "socket", "", "where the server listens")
	flags.StringVar(&asked.wire, "wire", "grpc", "how requests are put on the wire: grpc")
	flags.StringVar(&asked.path, "path", "", "the method")
	flags.Float64Var(&asked.seconds, "seconds", 1, "how long")
	flags.IntVar(&asked.streams, "streams", 1, "calls under way on a channel")
	flags.Uint64Var(&asked.first, "first", 0, "the first number")
	flags.Float64Var(&asked.rate, "rate", 0, "calls a second: 0, the loop is closed")
	flags.IntVar(&asked.turns, "turns", 0, "how often each request is made: 0, for as long as there is time")
	flags.StringVar(&asked.samples, "samples", "", "the file for calls that were answered")
	flags.StringVar(&asked.failures, "failures", "", "the file for calls that failed")
	if err := flags.Parse(arguments); err != nil {
		return asked, nil, err
	}
	if asked.wire != "grpc" || asked.rate != 0 || asked.turns != 0 {
		return asked, nil, errors.New("the load by grpc-go has a closed loop and no turns")
	}
	return asked, flags.Args(), nil
}

// channel is a connection with the requests that are made on it.
type channel struct {
	connection *grpc.ClientConn
	requests   [][]byte
}

func open(socket, file string) (*channel, error) {
	requests, err := read(file)
	if err != nil {
		return nil, err
	}
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	return &channel{connection, requests}, err
}

// read reads requests, each behind its length in four little-endian bytes.
func read(file string) ([][]byte, error) {
	encoded, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var requests [][]byte
	for len(encoded) >= 4 {
		length := int(binary.LittleEndian.Uint32(encoded))
		if len(encoded) < 4+length {
			break
		}
		requests = append(requests, encoded[4:4+length])
		encoded = encoded[4+length:]
	}
	if len(encoded) > 0 || len(requests) == 0 {
		return nil, fmt.Errorf("%s: the request file is damaged", file)
	}
	return requests, nil
}

// drive makes calls on all channels until the time is up.
func drive(asked options, channels []*channel) outcome {
	var next atomic.Uint64
	next.Store(asked.first)
	deadline := nanos(unix.CLOCK_MONOTONIC) + int64(asked.seconds*1e9)
	outcomes := make([]outcome, len(channels)*asked.streams)
	var callers sync.WaitGroup
	for i := range outcomes {
		callers.Go(func() { outcomes[i] = channels[i%len(channels)].call(asked.path, deadline, &next) })
	}
	callers.Wait()
	var total outcome
	for _, one := range outcomes {
		total.answered = append(total.answered, one.answered...)
		total.failed = append(total.failed, one.failed...)
	}
	return total
}

// call makes one call after the other.
func (c *channel) call(path string, deadline int64, next *atomic.Uint64) outcome {
	var done outcome
	for turn := 0; nanos(unix.CLOCK_MONOTONIC) < deadline; turn++ {
		request, reply := numbered(c.requests[turn%len(c.requests)], next), []byte(nil)
		began := nanos(unix.CLOCK_MONOTONIC)
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		err := c.connection.Invoke(ctx, path, &request, &reply, grpc.ForceCodecV2(encoded{}))
		cancel()
		one := sample{began, nanos(unix.CLOCK_MONOTONIC)}
		if err != nil {
			done.failed = append(done.failed, one)
		} else {
			done.answered = append(done.answered, one)
		}
	}
	return done
}

// numbered is a request with a number in each of its places.
func numbered(template []byte, next *atomic.Uint64) []byte {
	number := fmt.Appendf(nil, "%0*d", len(numberPlace), next.Add(1)-1)
	return bytes.ReplaceAll(template, []byte(numberPlace), number)
}

// encoded is the codec of messages that are encoded already.
type encoded struct{}

func (encoded) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

func (encoded) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}

func (encoded) Name() string { return "proto" }

func write(file string, samples []sample) error {
	bytes := make([]byte, 0, 16*len(samples))
	for _, one := range samples {
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(one.began))
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(one.ended))
	}
	return os.WriteFile(file, bytes, 0o600)
}

func nanos(clock int32) int64 {
	var time unix.Timespec
	if err := unix.ClockGettime(clock, &time); err != nil {
		panic(err) // these clocks exist on every Linux
	}
	return time.Nano()
}
