package remora_test

import (
	"os"
	"os/exec"
	"testing"

	"remora.dev/remora"
)

func TestTheExampleRuns(t *testing.T) {
	command := exec.Command("go", "run", "./example")
	command.Env = append(os.Environ(), remora.EndpointVariable+"="+startServer(t, overUnix(t)))
	said, err := command.CombinedOutput()
	if err != nil || string(said) != "a new conversation\nuser: Can I work abroad?\n" {
		t.Fatalf("%v: %s", err, said)
	}
}
