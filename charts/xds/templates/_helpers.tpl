{{/* The Secret with the certificate of the ADS server; empty without TLS. */}}
{{- define "xds.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (.Values.certManager.enabled | ternary (printf "%s-tls" (include "tollgate.fullname" .)) "") -}}
{{- end -}}

{{/* `files`, `managed` or `none`: where certificates come from. */}}
{{- define "xds.tlsMode" -}}
{{- if or (include "xds.tlsSecret" .) .Values.settings.XDS_GRPC_TLS_CERT }}files{{ else }}{{ .Values.tls.mode }}{{ end -}}
{{- end -}}

{{/* Not empty when cert-manager issues the certificate of the ADS server. */}}
{{- define "xds.hasCertManager" -}}
{{- if and .Values.certManager.enabled (not .Values.tls.existingSecret) }}true{{ end -}}
{{- end -}}

{{/*
Not empty when the admission webhook is served. It has the certificate of the ADS server, whose
authority the API server must know.
*/}}
{{- define "xds.servesAdmission" -}}
{{- $webhook := .Values.admissionWebhook -}}
{{- $isKnown := or $webhook.caBundle $webhook.annotations (include "xds.hasCertManager" .) -}}
{{- $mode := include "xds.tlsMode" . -}}
{{- if and $webhook.enabled (or (eq $mode "managed") (and (eq $mode "files") $isKnown)) }}true{{ end -}}
{{- end -}}

{{/* Secrets with certificates of the xDS server, in the namespace of the release. */}}
{{- define "xds.certificateSecrets" -}}
{{- $name := include "tollgate.fullname" . -}}
[{{ $name }}-ca, {{ $name }}-server, {{ $name }}-client]
{{- end -}}

{{/* (list context namespace names): empty Secrets and the permission to update them, so that no role can create Secrets. */}}
{{- define "xds.certificateObjects" -}}
{{- $context := index . 0 -}}
{{- $namespace := index . 1 -}}
{{- range index . 2 }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ . }}
  namespace: {{ $namespace | quote }}
  labels:
    {{- include "tollgate.labels" $context | nindent 4 }}
# Filled by the xDS server.
type: Opaque
{{- end }}
{{- if $context.Values.rbac.create }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "xds.clusterName" $context }}-certificates
  namespace: {{ $namespace | quote }}
  labels:
    {{- include "tollgate.labels" $context | nindent 4 }}
rules:
  - apiGroups: [""]
    resources: [secrets]
    resourceNames: {{ toJson (index . 2) }}
    verbs: [get, list, watch, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "xds.clusterName" $context }}-certificates
  namespace: {{ $namespace | quote }}
  labels:
    {{- include "tollgate.labels" $context | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "xds.clusterName" $context }}-certificates
subjects:
  {{- include "xds.subjects" $context | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The replica that holds this Lease writes the status of objects. */}}
{{- define "xds.leaseName" -}}
{{- .Values.settings.XDS_LEASE_NAME | default (include "tollgate.fullname" .) -}}
{{- end -}}

{{- define "xds.leaseNamespace" -}}
{{- .Values.settings.XDS_LEASE_NAMESPACE | default .Release.Namespace -}}
{{- end -}}

{{/* Not empty when status is written. */}}
{{- define "xds.writesStatus" -}}
{{- if ne (toString .Values.settings.XDS_STATUS_ENABLED) "false" }}true{{ end -}}
{{- end -}}

{{/* Cluster-scoped objects need the namespace of the release in their name. */}}
{{- define "xds.clusterName" -}}
{{ .Release.Namespace }}-{{ include "tollgate.fullname" . }}
{{- end -}}

{{/* Permissions for RateLimitConfigs. */}}
{{- define "xds.rules" -}}
# Read-only access to the rules.
- apiGroups: [ratelimit.tollgate.dev]
  resources: [ratelimitconfigs]
  verbs: [get, list, watch]
- apiGroups: [policy.tollgate.dev]
  resources: [accesspolicies]
  verbs: [get, list, watch]
# What access policies are for.
- apiGroups: [gateway.networking.k8s.io]
  resources: [gateways, httproutes, grpcroutes]
  verbs: [list, watch]
{{- if include "xds.writesStatus" . }}
# Status, by server-side apply.
- apiGroups: [ratelimit.tollgate.dev]
  resources: [ratelimitconfigs/status]
  verbs: [patch]
- apiGroups: [policy.tollgate.dev]
  resources: [accesspolicies/status]
  verbs: [patch]
# Events for kubectl describe.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
{{- end -}}

{{- define "xds.subjects" -}}
- kind: ServiceAccount
  name: {{ include "tollgate.serviceAccountName" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end -}}
