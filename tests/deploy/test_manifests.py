"""The manifests name what exists: settings, pages, ports, volumes. Users apply these files without helm."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from tests.deploy.dockerfile import ROOT, instruction
from tests.patience import PATIENCE, eventually

from remora.address import ENDPOINT_VARIABLE
from remora.testing import serve
from remora_server.commands.root import root_parser
from remora_server.settings.settings import KEYS, load

Object = dict[str, Any]

FILES = sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
OK = int(HTTPStatus.OK)
AGENT = ROOT / "deploy" / "helm" / "agent" / "files" / "agent.py"
CHART = ROOT / "deploy" / "helm" / "remora"


def objects(kind: str) -> Iterator[Object]:
    """The objects of a kind in all files."""
    for file in FILES:
        for each in yaml.safe_load_all(file.read_text("utf-8")):
            if each and each["kind"] == kind:
                yield each


PODS = [deployment["spec"]["template"]["spec"] for deployment in objects("Deployment")]


def sidecar(pod: Object) -> Object:
    [found] = [each for each in pod["initContainers"] if each["name"] == "remora"]
    return dict(found)


def probes(pod: Object) -> dict[str, Object]:
    """What the probes ask for, by their names."""
    return {name: sidecar(pod)[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}


def agent(endpoint: str) -> subprocess.Popen[str]:
    """The example's agent as a process."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_")}
    return subprocess.Popen([sys.executable, AGENT], env=clean | {ENDPOINT_VARIABLE: endpoint}, stdout=PIPE, text=True)


def status(url: str) -> int:
    """What a page answers: 503 while the server starts."""
    try:
        with urlopen(url, timeout=PATIENCE) as page:
            return int(page.status)
    except HTTPError as error:
        with error:
            return error.code


def mounts(container: Object) -> dict[str, str]:
    return {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}


def image_user() -> str:
    return instruction("USER", "without-model").argument


def served(pod: Object) -> dict[str, Any]:
    """The settings that the sidecar's command line gives."""
    given = vars(root_parser().parse_args(sidecar(pod)["args"]))
    return {name: value for name, value in given.items() if name in {key.name for key in KEYS} and value is not None}


def test_there_are_files_with_and_without_a_volume_and_over_tcp() -> None:
    assert [file.stem for file in FILES] == ["sidecar", "tcp", "tls", "volume"]
    assert len(PODS) == 4


@pytest.mark.parametrize("pod", PODS)
def test_the_sidecar_starts_before_the_agent_and_stays(pod: Object) -> None:
    first = pod["initContainers"][0]

    assert (first["name"], first["restartPolicy"]) == ("remora", "Always")


@pytest.mark.parametrize("pod", PODS)
def test_the_sidecars_command_line_is_understood(pod: Object) -> None:
    settings = load(served(pod), {}).settings

    assert settings.listen[0] == "unix:/run/remora/remora.sock"
    assert str(settings.data) == "/var/lib/remora"


@pytest.mark.parametrize("pod", PODS)
def test_probes_ask_on_the_port_that_serves_them(pod: Object) -> None:
    ports = {port["name"]: port["containerPort"] for port in sidecar(pod)["ports"]}
    asked = probes(pod)

    assert [asked[name]["path"] for name in asked] == ["/startupz", "/readyz", "/livez"]
    assert {probe["port"] for probe in asked.values()} == {"remora-health"}
    assert load(served(pod), {}).settings.health_listen == f"0.0.0.0:{ports['remora-health']}"


@pytest.mark.slow
def test_a_server_answers_what_probes_and_prometheus_ask_for() -> None:
    paths = {probe["path"] for pod in PODS for probe in probes(pod).values()}
    scraped = {
        each["spec"]["template"]["metadata"]["annotations"]["prometheus.io/path"] for each in objects("Deployment")
    }
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"

    with serve("--model", "none", "--health-listen", address):
        answers = {
            path: eventually(partial(status, f"http://{address}{path}"), until=OK.__eq__) for path in paths | scraped
        }

    assert answers == dict.fromkeys(("/startupz", "/readyz", "/livez", "/metrics"), OK)


def test_prometheus_is_told_where_the_metrics_are() -> None:
    for deployment in objects("Deployment"):
        template = deployment["spec"]["template"]
        port = sidecar(template["spec"])["ports"][0]["containerPort"]
        assert template["metadata"]["annotations"] == {
            "prometheus.io/scrape": "true", "prometheus.io/port": str(port), "prometheus.io/path": "/metrics",
        }  # fmt: skip


@pytest.mark.parametrize("pod", PODS)
def test_agent_and_sidecar_share_the_socket_and_its_user(pod: Object) -> None:
    [agent] = pod["containers"]
    endpoints = [each["value"] for each in agent["env"] if each["name"] == ENDPOINT_VARIABLE]

    assert endpoints == [f"unix:{mounts(agent)['remora-socket']}/remora.sock"]
    assert mounts(agent)["remora-socket"] == mounts(sidecar(pod))["remora-socket"]
    assert "runAsUser" not in agent["securityContext"] | sidecar(pod)["securityContext"]
    assert f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}" == image_user()


@pytest.mark.parametrize("pod", PODS)
def test_every_mount_has_its_volume_and_only_volumes_are_written(pod: Object) -> None:
    volumes = {volume["name"] for volume in pod["volumes"]}

    for container in (*pod["containers"], *pod["initContainers"]):
        assert mounts(container).keys() <= volumes
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
        }  # fmt: skip
    assert set(instruction("VOLUME", "without-model").words()) <= set(mounts(sidecar(pod)).values())


@pytest.mark.slow
def test_the_agent_remembers_what_it_said_and_ends_at_sigterm() -> None:
    with serve("--model", "none") as endpoint, agent(endpoint) as process:
        assert process.stdout
        said = process.stdout.readline()
        process.terminate()
        code = process.wait(PATIENCE)

    assert (said, code) == ("I remember 1 messages.\n", 0)


def test_the_agent_of_the_manifests_is_the_one_in_the_chart() -> None:
    scripts = [each["data"]["agent.py"] for each in objects("ConfigMap")]

    assert {"\n".join(line.rstrip() for line in script.splitlines()) for script in scripts} == {
        AGENT.read_text().rstrip()
    }


def test_volumes_that_stay_are_claimed_and_the_data_is_used_by_one_pod_at_a_time() -> None:
    claims = {each["metadata"]["name"]: each["spec"]["accessModes"] for each in objects("PersistentVolumeClaim")}
    [deployment] = [each for each in objects("Deployment") if "strategy" in each["spec"]]
    pod = deployment["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume.get("persistentVolumeClaim") for volume in pod["volumes"]}

    assert claims[volumes["remora-data"]["claimName"]] == ["ReadWriteOncePod"]
    assert claims[volumes["remora-backups"]["claimName"]] == ["ReadWriteOnce"]
    assert mounts(sidecar(pod))["remora-backups"] == "/backups"
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


def test_a_port_for_other_pods_asks_for_tokens_and_names_who_may_call() -> None:
    policies = list(objects("NetworkPolicy"))
    pods = [pod for pod in PODS if "token_file" in served(pod)]
    assert len(policies) == len(pods) == 2
    for policy, pod in zip(policies, pods, strict=True):
        [volume] = [volume for volume in pod["volumes"] if volume["name"] == "remora-tokens"]
        probes, calls = policy["spec"]["ingress"]

        assert volume["secret"]["defaultMode"] == 0o440
        assert str(served(pod)["token_file"]).startswith(mounts(sidecar(pod))["remora-tokens"])
        assert probes["ports"] == [{"protocol": "TCP", "port": 9090}]
        assert calls["from"]
        assert served(pod)["listen"][1] == f"0.0.0.0:{calls['ports'][0]['port']}"


def test_a_service_sends_calls_to_the_number_of_the_port_that_the_sidecar_listens_on() -> None:
    services = list(objects("Service"))
    pods = [pod for pod in PODS if "token_file" in served(pod)]

    assert len(services) == len(pods) == 2
    for service, pod in zip(services, pods, strict=True):
        [port] = service["spec"]["ports"]
        assert served(pod)["listen"][1] == f"0.0.0.0:{port['targetPort']}"


def blocks_of(section: str) -> list[Any]:
    """The blocks of YAML in a section of docs/kubernetes.md."""
    text = (ROOT / "docs" / "kubernetes.md").read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_a_pod_that_is_made_as_the_page_says_reaches_the_port() -> None:
    client, _ = blocks_of("From other pods")
    [container] = client["spec"]["containers"]
    variables = {each["name"]: each for each in container["env"]}
    services, policies = list(objects("Service")), list(objects("NetworkPolicy"))
    assert len(services) == len(policies) == 2

    for service, policy in zip(services, policies, strict=True):
        [admitted] = policy["spec"]["ingress"][1]["from"]
        assert admitted == {"podSelector": {"matchLabels": client["metadata"]["labels"]}}
        assert variables[ENDPOINT_VARIABLE]["value"] == (
            f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
        )
    assert variables["REMORA_TOKEN"] in [each for pod in PODS for each in pod["containers"][0]["env"]]


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_the_values_of_the_page_admit_the_pod_that_it_shows(tmp_path: Path) -> None:
    client, values = blocks_of("From other pods")

    made = list(yaml.safe_load_all(rendered_with(json.dumps(values["remora"]), tmp_path).stdout))

    [policy] = [each for each in made if each and each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["ingress"][1]["from"] == [{"podSelector": {"matchLabels": client["metadata"]["labels"]}}]


def test_a_port_with_tls_has_its_files_from_a_secret_that_the_sidecar_alone_mounts() -> None:
    [pod] = [pod for pod in PODS if "tls_cert" in served(pod)]
    [volume] = [volume for volume in pod["volumes"] if volume["name"] == "remora-tls"]
    folder = mounts(sidecar(pod))["remora-tls"]

    assert volume["secret"] == {"secretName": "remora-tls", "defaultMode": 0o440}
    assert [str(served(pod)[name]) for name in ("tls_cert", "tls_key", "tls_client_ca")] == [
        f"{folder}/tls.crt",
        f"{folder}/tls.key",
        f"{folder}/ca.crt",
    ]
    assert all("remora-tls" not in mounts(container) for container in pod["containers"])


def test_the_page_makes_every_secret_that_a_manifest_needs_with_its_keys() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")
    commands = re.findall(r"^kubectl create secret generic (\S+) (.*)$", page, re.MULTILINE)
    made = {name: set(re.findall(r"--from-(?:literal|file)=([\w.]+)", options)) for name, options in commands}

    needed: dict[str, set[str]] = {}
    for pod in PODS:
        folders = {mounts(sidecar(pod)).get(volume["name"]): volume for volume in pod["volumes"] if "secret" in volume}
        for path in (Path(str(value)) for value in served(pod).values()):
            if volume := folders.get(str(path.parent)):
                needed.setdefault(volume["secret"]["secretName"], set()).add(path.name)
        for variable in (each for container in pod["containers"] for each in container["env"]):
            if key := variable.get("valueFrom", {}).get("secretKeyRef"):
                needed.setdefault(key["name"], set()).add(key["key"])
    assert needed.keys() == {"remora-tokens", "remora-tls"}
    assert made == needed


def test_the_schema_knows_every_value_of_the_chart() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))

    assert values.keys() == schema["properties"].keys() - {"global"}
    for name, value in values.items():
        of_value = schema["properties"][name]
        if of_value.get("additionalProperties") is False:
            assert value.keys() == of_value["properties"].keys()


def test_the_charts_settings_are_settings() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    of_settings = schema["properties"]["settings"]
    names = {key.name for key in KEYS}
    reserved = set(of_settings["propertyNames"]["not"]["enum"])
    other_options = vars(root_parser().parse_args(["serve"])).keys() - names - {"run"}

    assert other_options == reserved - names == {"config", "lease"}
    assert {*values["settings"], *of_settings["properties"]} <= names


def rendered(settings: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """The example's manifests, as helm makes them with these settings of the sidecar."""
    return rendered_with(f"{{settings: {settings}}}", directory)


def rendered_with(given: str, directory: Path, pod: str = "") -> subprocess.CompletedProcess[str]:
    """The example's manifests, as helm makes them with these values of the sidecar, and `pod` in the agent's pod."""
    charts = directory / "charts"
    shutil.copytree(CHART.parent, charts, dirs_exist_ok=True)
    template = charts / "agent" / "templates" / "_agent.tpl"
    template.write_text(template.read_text("utf-8").replace("\ncontainers:\n", f"\n{pod}\ncontainers:\n"), "utf-8")
    values = directory / "values.yaml"
    values.write_text(f"remora: {given}", "utf-8")
    subprocess.run(
        ["helm", "dependency", "update", "--skip-refresh", str(charts / "agent")], check=True, capture_output=True
    )
    command = ["helm", "template", "memory", str(charts / "agent"), "--kube-version", "1.33.0", "--values", str(values)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ("{segment_bytes: 67108864}", "segment_bytes", "67108864"),
        ("{recall_bytes: 64MiB}", "recall_bytes", "64MiB"),
        ("{chat_timeout: 0.5}", "chat_timeout", "0.5"),
        ("{late: off}", "late", "off"),
        ('{late: "on"}', "late", "on"),
        ('{socket_mode: "0660"}', "socket_mode", "0660"),
        ("{insecure: true}", "insecure", True),
        ("{insecure: false}", "insecure", None),
    ],
)
def test_a_setting_of_the_chart_is_the_servers(tmp_path: Path, settings: str, name: str, value: object) -> None:
    made = yaml.safe_load_all(rendered(settings, tmp_path).stdout)
    [pod] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    assert served(pod).get(name) == value
    load(served(pod), {})


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize("as_text", [False, True])
def test_embedding_models_are_given_as_maps_or_as_text(tmp_path: Path, as_text: bool) -> None:
    large = {
        "provider": "openai",
        "base_url": "https://models.example/a&b/v1",
        "model": "größe <large>",
        "dimensions": 1024,
        "batch_tokens": 1_000_000,
        "query_timeout": 0.5,
        "headers": {"x-team": 'a "quoted" \\ one'},
    }
    maps = {"embedding_models": {"large": large}, "tenant_models": {"acme": {"messages": "large"}}}
    given = {name: yaml.safe_dump(value) for name, value in maps.items()} if as_text else maps

    made = yaml.safe_load_all(rendered(json.dumps(given), tmp_path).stdout)
    [pod] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    settings = load(served(pod), {}).settings
    assert large.items() <= settings.embedding_models["large"].as_mapping().items()
    assert settings.tenant_models == {"acme": {"messages": "large"}}


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    "settings",
    [
        "{socket_mode: 0660}",
        "{threads: true}",
        "{threads: {}}",
        "{insecure: 1}",
        "{embedding_models: [large]}",
        "{tenant_models: {acme: large}}",
    ],
)
def test_a_setting_of_another_type_is_refused_by_the_chart(tmp_path: Path, settings: str) -> None:
    refused = rendered(settings, tmp_path)

    assert refused.returncode != 0
    assert settings.strip("{").split(":")[0] in refused.stderr


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize("name", ["lease", "config", "listen", "Threads"])
def test_what_is_no_setting_or_the_charts_own_is_refused_by_the_chart(tmp_path: Path, name: str) -> None:
    refused = rendered(f"{{{name}: x}}", tmp_path)

    assert refused.returncode != 0
    assert name in refused.stderr


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_what_the_pod_sets_stays_even_if_it_is_false_or_zero(tmp_path: Path) -> None:
    security = "{runAsNonRoot: false, runAsUser: 0, runAsGroup: null, seccompProfile: {type: Unconfined}}"
    given = "{podSecurityContext: {seccompProfile: {type: Localhost, localhostProfile: remora}}}"
    pod = f"securityContext: {security}\nterminationGracePeriodSeconds: 0"

    made = yaml.safe_load_all(rendered_with(given, tmp_path, pod).stdout)
    [spec] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    assert spec["securityContext"] == {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "Unconfined"},
    }
    assert spec["terminationGracePeriodSeconds"] == 0


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_the_tenants_of_client_certificates_come_from_a_config_map(tmp_path: Path) -> None:
    tls = "{secret: s, clientCertificates: true, clientTenants: agents}"
    made = yaml.safe_load_all(rendered_with(f"{{tcp: {{enabled: true, tokenSecret: t, tls: {tls}}}}}", tmp_path).stdout)
    [pod] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    [volume] = [volume for volume in pod["volumes"] if volume["name"] == "remora-tenants"]
    assert volume["configMap"] == {"name": "agents"}
    assert str(served(pod)["tls_client_tenants"]) == f"{mounts(sidecar(pod))['remora-tenants']}/tenants"
    assert load(served(pod), {}).settings.tls is not None


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(("values", "strategy"), [("{data: {claim: mine}}", {"type": "Recreate"}), ("{}", None)])
def test_a_claim_of_ones_own_is_used_by_one_pod_at_a_time(tmp_path: Path, values: str, strategy: object) -> None:
    made = yaml.safe_load_all(rendered_with(values, tmp_path).stdout)
    [deployment] = [each for each in made if each and each["kind"] == "Deployment"]

    assert deployment["spec"].get("strategy") == strategy


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_the_sidecar_has_the_environment_variables_that_are_given(tmp_path: Path) -> None:
    key = "{name: KEY, valueFrom: {secretKeyRef: {name: embeddings, key: token}}}"
    settings = "{embedding_url: 'http://e/v1', embedding_model: e5, embedding_api_key_variable: KEY}"
    made = yaml.safe_load_all(rendered_with(f"{{env: [{key}], settings: {settings}}}", tmp_path).stdout)
    [pod] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    assert sidecar(pod)["env"] == [
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "embeddings", "key": "token"}}}
    ]
    assert served(pod)["embedding_api_key_variable"] == "KEY"
    load(served(pod), {"KEY": "secret"})


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_in_a_cluster_of_ipv6_both_ports_listen_there(tmp_path: Path) -> None:
    made = yaml.safe_load_all(rendered_with('{host: "[::]", tcp: {enabled: true, tokenSecret: t}}', tmp_path).stdout)
    [pod] = [each["spec"]["template"]["spec"] for each in made if each and each["kind"] == "Deployment"]

    settings = load(served(pod), {}).settings
    assert (settings.listen[1], settings.health_listen) == ("[::]:50051", "[::]:9090")


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    "tls", ["{secret: s, clientTenants: agents}", "{clientCertificates: true}", "{secret: s, clientTenant: agents}"]
)
def test_values_of_tls_that_belong_together_are_required_by_the_chart(tmp_path: Path, tls: str) -> None:
    refused = rendered_with(f"{{tcp: {{enabled: true, tokenSecret: t, tls: {tls}}}}}", tmp_path)

    assert refused.returncode != 0
    assert re.search("tcp[./]tls", refused.stderr)


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            "{healthPort: 7, tcp: {enabled: true, port: 7, tokenSecret: t}}",
            "remora.tcp.port and remora.healthPort are one",
        ),
        ("{tcp: {tls: {secret: s}}}", "remora.tcp.tls needs remora.tcp.enabled: true"),
    ],
)
def test_values_that_no_server_could_have_are_refused_by_the_chart(tmp_path: Path, given: str, why: str) -> None:
    refused = rendered_with(given, tmp_path)

    assert refused.returncode != 0
    assert why in refused.stderr


def test_charts_and_image_have_one_version() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    version = cargo["workspace"]["package"]["version"]
    charts = [yaml.safe_load(file.read_text("utf-8")) for file in sorted(CHART.parent.glob("*/Chart.yaml"))]

    assert [(chart["version"], chart["appVersion"]) for chart in charts] == [(version, version)] * 2
    assert f'"remora.version" -}}}}{version}{{{{' in (CHART / "templates" / "_sidecar.tpl").read_text("utf-8")
    assert {sidecar(pod)["image"] for pod in PODS} == {f"remora:{version}"}


def test_compose_starts_the_server_with_settings_and_the_agent_with_its_socket() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text("utf-8"))["services"]

    given = vars(root_parser().parse_args(services["remora"]["command"]))

    assert given["health_listen"] == "0.0.0.0:9090"
    assert (ROOT / services["agent"]["volumes"][0].split(":")[0]).is_file()
    assert services["remora"]["volumes"][1] == services["agent"]["volumes"][1] == "socket:/run/remora"


def test_the_page_shows_how_to_make_the_image_that_the_manifests_name() -> None:
    page = (ROOT / "docs" / "kubernetes.md").read_text("utf-8")

    named = {container["image"] for pod in PODS for container in [*pod["initContainers"], *pod["containers"]]}

    assert named == set(re.findall(r"^make container TAG=(\S+)", page, re.MULTILINE))
