{{/* The panels of dashboard.yaml as a dashboard of Grafana. */}}
{{- define "tollgate.dashboard" -}}
{{- with .Values.dashboard -}}
{{- if .enabled -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "tollgate.metadata" (list $ "-dashboard" .annotations .labels) | nindent 2 }}
data:
  {{ include "tollgate.fullname" $ }}.json: |-
    {{- include "tollgate.dashboardJson" $ | nindent 4 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "tollgate.dashboardJson" -}}
{{- $name := include "tollgate.fullname" . -}}
{{- $panels := list -}}
{{- range $index, $panel := include "tollgate.ownSeries" (list . "dashboard.yaml") | fromYamlArray -}}
  {{- $targets := list -}}
  {{- range $number, $query := $panel.queries -}}
    {{- $targets = append $targets (dict "refId" (printf "Q%d" $number) "expr" $query.expr "legendFormat" $query.legend) -}}
  {{- end -}}
  {{- $place := dict "x" (mul 12 (mod $index 2)) "y" (mul 8 (div $index 2)) "w" 12 "h" 8 -}}
  {{- $panels = append $panels (dict "id" (add1 $index) "type" "timeseries" "title" $panel.title "description" $panel.description
        "datasource" (dict "type" "prometheus" "uid" "${datasource}") "gridPos" $place "targets" $targets
        "fieldConfig" (dict "defaults" (dict "unit" $panel.unit "min" 0) "overrides" list)) -}}
{{- end -}}
{{- $choice := dict "name" "datasource" "label" "Data source" "type" "datasource" "query" "prometheus" -}}
{{- dict "uid" (printf "%s/%s" .Release.Namespace $name | sha256sum | trunc 32) "title" (printf "Tollgate: %s/%s" .Release.Namespace $name)
      "tags" (list "tollgate") "schemaVersion" 39 "refresh" "30s" "time" (dict "from" "now-1h" "to" "now")
      "templating" (dict "list" (list $choice)) "panels" $panels | toPrettyJson -}}
{{- end -}}
