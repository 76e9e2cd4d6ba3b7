{{/*
(dict "context" . "served" ports "metrics" port "callers" peers "own" peersByPort): who may call. With `callers`, only those and
`networkPolicy.from` reach the served ports; without, Pods of the release and `from`, or everybody when that is empty. Ports of `own` have
callers of their own. All others are closed; kubectl port-forward and probes come from the node and get through.
*/}}
{{- define "tollgate.networkPolicy" -}}
{{- $context := .context -}}
{{- with $context.Values.networkPolicy -}}
{{- if .enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  {{- include "tollgate.metadata" (list $context) | nindent 2 }}
spec:
  podSelector:
    matchLabels:
      {{- include "tollgate.selectorLabels" $context | nindent 6 }}
  policyTypes: [Ingress{{ if .restrictEgress }}, Egress{{ end }}]
  ingress:
    - ports:
        {{- range $.served }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}
      {{- if $.callers }}
      from:
        {{- toYaml (concat $.callers .from) | nindent 8 }}
      {{- else }}
      {{- with .from }}
      from:
        {{- include "tollgate.releasePeer" $context | nindent 8 }}
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
    - ports:
        - port: {{ $.metrics }}
          protocol: TCP
      from:
        {{- include "tollgate.releasePeer" $context | nindent 8 }}
        {{- with .metricsFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- range $port, $from := $.own }}
    - ports:
        - port: {{ $port }}
          protocol: TCP
      from:
        {{- toYaml $from | nindent 8 }}
    {{- end }}
  {{- if .restrictEgress }}
  egress:
    - ports:
        - {port: 53, protocol: UDP}
        - {port: 53, protocol: TCP}
    - to:
        {{- include "tollgate.releasePeer" $context | nindent 8 }}
    {{- with .to }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* All Pods of the release, those of its tests among them. */}}
{{- define "tollgate.releasePeer" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}
