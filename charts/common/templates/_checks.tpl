{{/*
(list context problems): ends an installation that could not work, with one message for all that is
missing. Each line of the problems, which `<chart>.problems` returns, begins with a value by its
name in that chart.
*/}}
{{- define "tollgate.failOn" -}}
{{- with trim (index . 1) -}}
{{- fail (printf "these values are missing or wrong:\n  %s" (. | replace "\n" "\n  ")) -}}
{{- end -}}
{{- end -}}

{{/*
Not empty in a chart that is no part of the chart tollgate, which checks all of its parts together.
*/}}
{{- define "tollgate.checksItself" -}}
{{- if not (regexMatch "(^|/)tollgate/charts/" .Template.BasePath) }}true{{ end -}}
{{- end -}}

{{/* (dict "Values" … "prefix" "auth."): configuration problems common to all charts. */}}
{{- define "tollgate.problems" -}}
{{- $prefix := .prefix -}}
{{- $values := .Values -}}
{{- if and ($values.certManager).enabled (not $values.certManager.issuerRef.name) }}
{{ $prefix }}certManager.issuerRef: who signs, such as {name: tollgate-ca, kind: ClusterIssuer}
{{- end }}
{{- range $name, $key := $values.secretSettings }}
{{- if and $key (not (kindIs "invalid" (index $values.settings $name))) }}
{{ $prefix }}settings.{{ $name }} and {{ $prefix }}secretSettings.{{ $name }}: one of them, not both
{{- end }}
{{- end }}
{{- end -}}
