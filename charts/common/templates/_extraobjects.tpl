{{- define "tollgate.extraObjects" -}}
{{- range .Values.extraObjects }}
---
{{ tpl (kindIs "string" . | ternary . (toYaml .)) $ }}
{{- end }}
{{- end -}}
