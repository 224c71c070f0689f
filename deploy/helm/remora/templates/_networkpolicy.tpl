{{/*
remora.networkPolicy is the spec of a NetworkPolicy for pods whose sidecar listens on TCP. It takes a list of the chart's root
and the pods' labels. Calls come from `tcp.clients` alone. Probes and metrics hold no data, and come from everywhere. Name
the agent's own ports in a policy of its own: policies add up.
*/}}
{{- define "remora.networkPolicy" -}}
{{- $values := (first .).Values.remora -}}
podSelector:
  matchLabels:
    {{- toYaml (last .) | nindent 4 }}
policyTypes: [Ingress]
ingress:
  - ports:
      - {protocol: TCP, port: {{ $values.healthPort }}}
  {{- if $values.tcp.clients }}
  - from:
      {{- toYaml $values.tcp.clients | nindent 6 }}
    ports:
      - {protocol: TCP, port: {{ $values.tcp.port }}}
  {{- end }}
{{- end -}}
