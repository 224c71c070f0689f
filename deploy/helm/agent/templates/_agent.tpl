{{/* The pod without Remora, as this agent's chart would have it. */}}
{{- define "agent.pod" -}}
automountServiceAccountToken: false
containers:
  - name: agent
    image: {{ .Values.image.repository }}:{{ .Values.image.tag }}
    imagePullPolicy: {{ .Values.image.pullPolicy }}
    command: [/opt/remora/bin/python, /agent/agent.py]
    {{- if .Values.remora.tcp.enabled }}
    env:
      - name: REMORA_TOKEN
        valueFrom:
          secretKeyRef: {name: {{ .Values.remora.tcp.tokenSecret }}, key: {{ .Values.agentTokenKey }}}
    {{- end }}
    resources:
      {{- toYaml .Values.resources | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
      readOnlyRootFilesystem: true
    volumeMounts:
      - {name: agent, mountPath: /agent, readOnly: true}
volumes:
  - name: agent
    configMap: {name: {{ .Release.Name }}-agent}
{{- end -}}

{{- define "agent.labels" -}}
app.kubernetes.io/name: agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
