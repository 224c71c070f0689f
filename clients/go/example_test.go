package remora_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"remora.dev/remora"
)

func TestTheProgramOfTheReadmeRuns(t *testing.T) {
	folder := t.TempDir()
	readme, err := os.ReadFile("README.md")
	must(t, err)
	_, program, _ := strings.Cut(string(readme), "```go\n")
	program, _, found := strings.Cut(program, "```\n")
	if !found {
		t.Fatal("README.md has no program")
	}
	must(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))
	here, err := filepath.Abs(".")
	must(t, err)
	sums, err := os.ReadFile("go.sum")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600))
	module := "module example\ngo 1.26.0\nrequire remora.dev/remora v0.1.0\nreplace remora.dev/remora => " + here + "\n"
	must(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte(module), 0o600))

	command := exec.Command("go", "run", "-mod=mod", ".")
	command.Dir = folder
	command.Env = append(os.Environ(), remora.EndpointVariable+"="+startServer(t, overUnix(t)))
	said, err := command.CombinedOutput()
	if err != nil || string(said) != "user: Can I work abroad?\n" {
		t.Fatalf("%v: %s", err, said)
	}
}

func TestTheExampleRuns(t *testing.T) {
	command := exec.Command("go", "run", "./example")
	command.Env = append(os.Environ(), remora.EndpointVariable+"="+startServer(t, overUnix(t)))
	said, err := command.CombinedOutput()
	if err != nil || string(said) != "a new conversation\nuser: Can I work abroad?\n" {
		t.Fatalf("%v: %s", err, said)
	}
}
