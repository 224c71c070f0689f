{{/*
remora.pod adds Remora to a pod. It takes a list of the chart's root and the pod's spec as a map, and gives the spec back, with

- the sidecar in front of the init containers, so that it serves before all others start and until all have ended,
- the volumes of its socket and its data,
- the socket and REMORA_ENDPOINT in every container,
- the fields of a security context, and a grace period, where the pod does not set them: false and 0 are values, null is none.

    spec:
      {{- include "remora.pod" (list . (include "my.pod" . | fromYaml)) | nindent 6 }}
*/}}
{{- define "remora.pod" -}}
{{- $root := first . -}}
{{- $values := $root.Values.remora -}}
{{- $pod := deepCopy (last . ) -}}
{{- $containers := list -}}
{{- range $pod.containers -}}
{{- $containers = append $containers (include "remora.client" . | fromYaml) -}}
{{- end -}}
{{- $before := list (include "remora.sidecar" $root | fromYaml) -}}
{{- range $pod.initContainers -}}
{{- $before = append $before (include "remora.client" . | fromYaml) -}}
{{- end -}}
{{- $_ := set $pod "initContainers" $before -}}
{{- $_ := set $pod "containers" $containers -}}
{{- $_ := set $pod "volumes" (concat (default list $pod.volumes) (include "remora.volumes" $root | fromYamlArray)) -}}
{{- $security := deepCopy $values.podSecurityContext -}}
{{- range $field, $value := $pod.securityContext -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $security $field $value -}}
{{- end -}}
{{- end -}}
{{- $_ := set $pod "securityContext" $security -}}
{{- if kindIs "invalid" $pod.terminationGracePeriodSeconds -}}
{{- $_ := set $pod "terminationGracePeriodSeconds" $values.terminationGracePeriodSeconds -}}
{{- end -}}
{{- toYaml $pod -}}
{{- end -}}

{{/* A container that can reach the socket. */}}
{{- define "remora.client" -}}
{{- $environment := list (dict "name" "REMORA_ENDPOINT" "value" "unix:/run/remora/remora.sock") -}}
{{- $mounts := list (dict "name" "remora-socket" "mountPath" "/run/remora") -}}
{{- $_ := set . "env" (concat (default list .env) $environment) -}}
{{- $_ := set . "volumeMounts" (concat (default list .volumeMounts) $mounts) -}}
{{- toYaml . -}}
{{- end -}}
