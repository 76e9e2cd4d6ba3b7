{{/* The Secret with the certificate of the ADS server; empty without TLS. */}}
{{- define "xds.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (.Values.certManager.enabled | ternary (printf "%s-tls" (include "tollgate.fullname" .)) "") -}}
{{- end -}}

{{/* The replica that holds this Lease writes the status of objects. */}}
{{- define "xds.leaseName" -}}
{{- .Values.settings.XDS_LEASE_NAME | default (include "tollgate.fullname" .) -}}
{{- end -}}

{{- define "xds.leaseNamespace" -}}
{{- .Values.settings.XDS_LEASE_NAMESPACE | default .Release.Namespace -}}
{{- end -}}

{{/* Not empty when statuses are written. */}}
{{- define "xds.writesStatus" -}}
{{- if ne (toString .Values.settings.XDS_STATUS_ENABLED) "false" }}true{{ end -}}
{{- end -}}

{{/* Objects of a cluster have no namespace that would tell two releases apart. */}}
{{- define "xds.clusterName" -}}
{{ .Release.Namespace }}-{{ include "tollgate.fullname" . }}
{{- end -}}

{{/* What it may do with RateLimitConfigs. */}}
{{- define "xds.rules" -}}
# The rules that it serves. It changes none of them.
- apiGroups: [ratelimit.tollgate.dev]
  resources: [ratelimitconfigs]
  verbs: [get, list, watch]
{{- if include "xds.writesStatus" . }}
# Its report, by server-side apply.
- apiGroups: [ratelimit.tollgate.dev]
  resources: [ratelimitconfigs/status]
  verbs: [patch]
{{- end }}
{{- end -}}

{{- define "xds.subjects" -}}
- kind: ServiceAccount
  name: {{ include "tollgate.serviceAccountName" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
