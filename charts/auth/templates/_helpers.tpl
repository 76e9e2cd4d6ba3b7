{{/* The Secret with the certificate of external authorization; empty without TLS. */}}
{{- define "auth.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (.Values.certManager.enabled | ternary (printf "%s-tls" (include "tollgate.fullname" .)) "") -}}
{{- end -}}

{{/* The ConfigMap with the rules of routes; empty when there are none. */}}
{{- define "auth.routesConfigMap" -}}
{{- .Values.routes.existingConfigMap | default (.Values.routes.rules | empty | ternary "" (printf "%s-routes" (include "tollgate.fullname" .))) -}}
{{- end -}}

{{/* Not empty when Envoy may ask. */}}
{{- define "auth.answersEnvoy" -}}
{{- if ne (toString .Values.settings.SVC_EXT_AUTHZ_ENABLED) "false" }}true{{ end -}}
{{- end -}}

{{/*
Not empty when metrics wait for scrapes: otherwise there is nothing to scrape, and no series for
alerts.
*/}}
{{- define "auth.servesMetrics" -}}
{{- $settings := .Values.settings -}}
{{- if and (ne (toString $settings.SVC_METRICS_ENABLED) "false") (ne (toString $settings.SVC_METRICS_EXPORTER) "opentelemetry") }}true{{ end -}}
{{- end -}}

{{/* Whether the route rules trust the issuer of the cluster, whose keys the Pods read from the API server; empty if not. */}}
{{- define "auth.kubernetesIssuer" -}}
{{- $found := .Values.routes.kubernetesIssuer -}}
{{- range .Values.routes.rules.issuers }}
  {{- if .kubernetes }}{{ $found = true }}{{ end }}
{{- end }}
{{- if $found }}true{{ end }}
{{- end }}

{{/*
(dict "Values" … "prefix" "auth."): what keeps the server from starting, or from being reached; a
line each.
*/}}
{{- define "auth.problems" -}}
{{- $values := .Values -}}
{{- $examples := dict
  "SVC_SITE_URL" "https://shop.example.com (where your users are)"
  "SVC_API_EXTERNAL_URL" "https://auth.example.com (where they reach this server)" -}}
{{- if $values.settings.SVC_SMTP_HOST -}}
  {{- $_ := set $examples "SVC_SMTP_ADMIN_EMAIL" "auth@example.com (the sender of mails)" -}}
{{- end -}}
{{- range $name, $example := $examples -}}
{{- $bare := trimPrefix "SVC_" $name -}}
{{- if not (include "tollgate.maySet" (list $ $name (list $name $bare (print "GOTRUE_" $bare)))) }}
{{ $.prefix }}settings.{{ $name }}, such as {{ $example }}
{{- end -}}
{{- end -}}
{{- include "tollgate.routeProblems" (dict "Values" $values "prefix" .prefix "url" $values.settings.SVC_API_EXTERNAL_URL "example" "auth.example.com") }}
{{- $answers := include "auth.answersEnvoy" . -}}
{{- range $name := list "gateways" "policies" }}
{{- $used := eq $name "gateways" | ternary $values.gateways $values.policies.enabled -}}
{{- if and $used (not $answers) }}
{{ $.prefix }}settings.SVC_EXT_AUTHZ_ENABLED is false: remove it, or {{ $.prefix }}{{ $name }}
{{- end }}
{{- end }}
{{- $addresses := list }}
{{- range $values.gateways }}
{{- $gateway := printf "%s/%s" .namespace .name }}
{{- if has $gateway $addresses }}
{{ $.prefix }}gateways: {{ $gateway }} is listed twice
{{- end }}
{{- $addresses = append $addresses $gateway }}
{{- if and .provider (ne .kind "Istio") }}
{{ $.prefix }}gateways: {{ $gateway }} has a provider, which only kind: Istio has
{{- end }}
{{- end }}
{{- include "tollgate.problems" . }}
{{- end -}}
