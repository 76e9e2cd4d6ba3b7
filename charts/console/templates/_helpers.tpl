{{/* URL of the console in browsers; empty when it is not known here. */}}
{{- define "console.url" -}}
{{- .Values.settings.CONSOLE_EXTERNAL_URL | default .Values.global.consoleUrl -}}
{{- end -}}

{{/* (dict "Values" … "prefix" "console." "issuer" where known): what keeps the console from starting, or from being reached; a line each. */}}
{{- define "console.problems" -}}
{{- $url := include "console.url" . -}}
{{- if not (or .issuer (include "tollgate.maySet" (list . "CONSOLE_AUTH_ISSUER"))) }}
{{ .prefix }}settings.CONSOLE_AUTH_ISSUER, such as https://auth.example.com (SVC_API_EXTERNAL_URL of the auth server)
{{- end }}
{{- if not (or $url (include "tollgate.maySet" (list . "CONSOLE_EXTERNAL_URL"))) }}
global.consoleUrl, such as https://console.example.com (where administrators open the console)
{{- end }}
{{- if and .Values.settings.PROMETHEUS_URL .Values.networkPolicy.enabled .Values.networkPolicy.restrictEgress (not .Values.networkPolicy.to) }}
{{ .prefix }}networkPolicy.to: the Pods of Prometheus, because of {{ .prefix }}settings.PROMETHEUS_URL, such as [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}]
{{- end }}
{{- include "tollgate.routeProblems" (dict "Values" .Values "prefix" .prefix "url" $url "example" "console.example.com") }}
{{- include "tollgate.problems" . }}
{{- end -}}
