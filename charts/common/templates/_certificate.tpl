{{/*
(dict "context" . "suffix" … "usages" … "dnsNames" …): a Certificate of cert-manager, kept in the Secret <fullname><suffix>. Only
with `certManager.enabled`. The issuer must be one that fills in `ca.crt`: a CA.
*/}}
{{- define "tollgate.certificate" -}}
{{- $context := .context -}}
{{- with $context.Values.certManager -}}
{{- if .enabled -}}
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  {{- include "tollgate.metadata" (list $context $.suffix) | nindent 2 }}
spec:
  secretName: {{ include "tollgate.fullname" $context }}{{ $.suffix }}
  issuerRef:
    {{- toYaml .issuerRef | nindent 4 }}
  duration: {{ .duration }}
  renewBefore: {{ .renewBefore }}
  privateKey:
    algorithm: ECDSA
    size: 256
    rotationPolicy: Always
  usages:
    {{- toYaml $.usages | nindent 4 }}
  dnsNames:
    {{- toYaml $.dnsNames | nindent 4 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* All DNS names of the Services of a chart. */}}
{{- define "tollgate.serviceDnsNames" -}}
{{- range $service := list "" "-headless" }}
{{- range $suffix := list "" (printf ".%s" $.Release.Namespace) (printf ".%s.svc" $.Release.Namespace) (printf ".%s.svc.cluster.local" $.Release.Namespace) }}
- {{ include "tollgate.fullname" $ }}{{ $service }}{{ $suffix }}
{{- end }}
{{- end }}
{{- end -}}
