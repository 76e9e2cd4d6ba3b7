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
{{- define "auth.requireUrls" -}}
{{- range $name, $what := dict "SVC_SITE_URL" "https://shop.example.com, where your users are" "SVC_API_EXTERNAL_URL" "https://auth.example.com, where they reach this server" }}
  {{- if not (index $.Values.settings $name) }}
    {{- fail (printf "settings.%s is not set: a URL such as %s" $name $what) }}
  {{- end }}
{{- end }}
{{- end -}}
