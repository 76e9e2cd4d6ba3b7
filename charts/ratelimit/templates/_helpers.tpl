{{/* host:port of the management server. */}}
{{- define "ratelimit.xdsAddress" -}}
{{- .Values.rules.xds.address | default (printf "%s-headless:18000" (include "tollgate.fullnameOf" (list . "xds"))) -}}
{{- end -}}

{{/* The Secret with our certificate for the management server; empty without mutual TLS. */}}
{{- define "ratelimit.xdsTlsSecret" -}}
{{- .Values.rules.xds.tls.existingSecret | default (.Values.certManager.enabled | ternary (printf "%s-xds-client" (include "tollgate.fullname" .)) "") -}}
{{- end -}}

{{/* The ConfigMap with the rules. */}}
{{- define "ratelimit.rulesConfigMap" -}}
{{- .Values.rules.existingConfigMap | default (printf "%s-rules" (include "tollgate.fullname" .)) -}}
{{- end -}}
