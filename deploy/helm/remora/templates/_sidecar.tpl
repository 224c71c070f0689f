{{/* The sidecar: an init container that stays. */}}
{{- define "remora.sidecar" -}}
{{- $values := .Values.remora -}}
{{- if and $values.tcp.enabled (eq (int $values.tcp.port) (int $values.healthPort)) -}}
{{- fail "remora.tcp.port and remora.healthPort are one port" -}}
{{- end -}}
{{- if and $values.tcp.tls.secret (not $values.tcp.enabled) -}}
{{- fail "remora.tcp.tls needs remora.tcp.enabled: true" -}}
{{- end -}}
name: remora
image: {{ include "remora.image" . }}
imagePullPolicy: {{ $values.image.pullPolicy }}
restartPolicy: Always
args:
  - serve
  - --listen=unix:/run/remora/remora.sock
  {{- if $values.tcp.enabled }}
  - --listen={{ $values.host }}:{{ $values.tcp.port }}
  - --token-file=/run/secrets/remora/tokens
  {{- if $values.tcp.tls.secret }}
  - --tls-cert=/run/secrets/remora-tls/tls.crt
  - --tls-key=/run/secrets/remora-tls/tls.key
  {{- if $values.tcp.tls.clientCertificates }}
  - --tls-client-ca=/run/secrets/remora-tls/ca.crt
  {{- end }}
  {{- if $values.tcp.tls.clientTenants }}
  - --tls-client-tenants=/run/config/remora/tenants
  {{- end }}
  {{- end }}
  {{- end }}
  - --health-listen={{ $values.host }}:{{ $values.healthPort }}
  - --data=/var/lib/remora
  {{- range $name, $value := $values.settings }}
  {{- if ne $name "insecure" }}
  - {{ printf "--%s=%s" (replace "_" "-" $name) (include "remora.setting" $value) | quote }}
  {{- else if $value }}
  - --insecure
  {{- end }}
  {{- end }}
{{- if $values.env }}
env:
  {{- toYaml $values.env | nindent 2 }}
{{- end }}
ports:
  - {name: remora-health, containerPort: {{ $values.healthPort }}}
  {{- if $values.tcp.enabled }}
  - {name: remora-grpc, containerPort: {{ $values.tcp.port }}}
  {{- end }}
startupProbe:
  httpGet: {path: /startupz, port: remora-health}
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 300
readinessProbe:
  httpGet: {path: /readyz, port: remora-health}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: remora-health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
resources:
  {{- toYaml $values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
volumeMounts:
  - {name: remora-socket, mountPath: /run/remora}
  - {name: remora-data, mountPath: /var/lib/remora}
  {{- if $values.backups.claim }}
  - {name: remora-backups, mountPath: /backups}
  {{- end }}
  {{- if $values.tcp.enabled }}
  - {name: remora-tokens, mountPath: /run/secrets/remora, readOnly: true}
  {{- if $values.tcp.tls.secret }}
  - {name: remora-tls, mountPath: /run/secrets/remora-tls, readOnly: true}
  {{- if $values.tcp.tls.clientTenants }}
  - {name: remora-tenants, mountPath: /run/config/remora, readOnly: true}
  {{- end }}
  {{- end }}
  {{- end }}
{{- end -}}

{{/*
A setting as the command line takes it: YAML makes a boolean of on and off, and helm 6.7e+07 of a large number. A map is given
as JSON, which YAML includes.
*/}}
{{- define "remora.setting" -}}
{{- if kindIs "map" . -}}
{{ toJson . }}
{{- else if kindIs "bool" . -}}
{{ ternary "on" "off" . }}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{- define "remora.image" -}}
{{- $image := .Values.remora.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default (include "remora.version" .) $image.tag }}
{{- end -}}
{{- end -}}

{{/* This chart's appVersion: a dependent chart has its own. */}}
{{- define "remora.version" -}}0.1.0{{- end -}}

{{/* The volumes of the socket, the data, the backups, the tokens, the certificates and their tenants. */}}
{{- define "remora.volumes" -}}
{{- $values := .Values.remora -}}
- name: remora-socket
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
- name: remora-data
  {{- if $values.data.claim }}
  persistentVolumeClaim: {claimName: {{ $values.data.claim }}}
  {{- else }}
  emptyDir: {sizeLimit: {{ $values.data.sizeLimit }}}
  {{- end }}
{{- if $values.backups.claim }}
- name: remora-backups
  persistentVolumeClaim: {claimName: {{ $values.backups.claim }}}
{{- end }}
{{- if $values.tcp.enabled }}
- name: remora-tokens
  secret: {secretName: {{ $values.tcp.tokenSecret }}, defaultMode: 0440}
{{- if $values.tcp.tls.secret }}
- name: remora-tls
  secret: {secretName: {{ $values.tcp.tls.secret }}, defaultMode: 0440}
{{- if $values.tcp.tls.clientTenants }}
- name: remora-tenants
  configMap: {name: {{ $values.tcp.tls.clientTenants }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
