{{/*
(dict "context" . "served" ports "gateway" ports "metrics" port "callers" peers "own" peersByPort): who may call. With `callers`, only those and
`networkPolicy.from` reach the served ports; without, Pods of the release and `from`. When that is empty, all sources reach the served ports, and
the namespaces of the release and of gateways the ports of `gateway`. Ports of `own` have callers of their own. All others are closed; kubectl port-forward and probes come from the node and get through.
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
    {{- if $.served }}
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
    {{- end }}
    {{- if $.gateway }}
    - ports:
        {{- range $.gateway }}
        - port: {{ . }}
          protocol: TCP
        {{- end }}
      from:
        {{- if .from }}
        {{- include "tollgate.releasePeer" $context | nindent 8 }}
        {{- toYaml .from | nindent 8 }}
        {{- else }}
        - podSelector: {}
        {{- with include "tollgate.gatewayNamespaces" $context | fromJsonArray }}
        - namespaceSelector:
            matchExpressions:
              - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
        {{- end }}
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

{{/* Namespaces of gateways as a JSON list: those of the release, and of the Gateways that a chart knows. */}}
{{- define "tollgate.gatewayNamespaces" -}}
{{- $namespaces := .Values.global.gatewayNamespaces | default list -}}
{{- range .Values.gateways }}{{ $namespaces = append $namespaces .namespace }}{{ end -}}
{{- uniq $namespaces | toJson -}}
{{- end -}}

{{/* All Pods of the release, those of its tests among them. */}}
{{- define "tollgate.releasePeer" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* The Pods of the console of the release. */}}
{{- define "tollgate.consolePeer" -}}
- podSelector:
    matchLabels:
      app.kubernetes.io/instance: {{ .Release.Name | quote }}
      tollgate.dev/console: "true"
{{- end -}}

{{/* For NOTES.txt: which gateways may call. */}}
{{- define "tollgate.gatewayNote" -}}
{{- $policy := .Values.networkPolicy -}}
{{- if and $policy.enabled (not $policy.from) -}}
The NetworkPolicy lets gateways of these namespaces call it: {{ prepend (include "tollgate.gatewayNamespaces" . | fromJsonArray) .Release.Namespace | uniq | join ", " }}. Add others to global.gatewayNamespaces.
{{- end -}}
{{- end -}}
