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

{{/* Ends an installation that could not start: nobody else can know these. */}}
{{- define "auth.requireSettings" -}}
{{- $examples := dict
  "SVC_SITE_URL" "https://shop.example.com (where your users are)"
  "SVC_API_EXTERNAL_URL" "https://auth.example.com (where they reach this server)"
  "SVC_SMTP_HOST" "smtp.example.com"
  "SVC_SMTP_PORT" "587"
  "SVC_SMTP_ADMIN_EMAIL" "auth@example.com (who mails come from)" -}}
{{- $missing := list -}}
{{- range $name, $example := $examples -}}
  {{- if not (index $.Values.settings $name) -}}
    {{- $missing = append $missing (printf "\n  settings.%s, such as %s" $name $example) -}}
  {{- end -}}
{{- end -}}
{{- with $missing -}}
  {{- fail (printf "the authentication server needs:%s" (join "" .)) -}}
{{- end -}}
{{- end -}}
