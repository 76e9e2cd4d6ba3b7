{{/* For the Prometheus Operator and for Grafana. */}}

{{/* (list context enabled): "true" when objects of the Prometheus Operator are wanted; `auto` asks the cluster. */}}
{{- define "tollgate.wantsPrometheusOperator" -}}
{{- $known := (index . 0).Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
{{- if or (eq (toString (index . 1)) "true") (and (eq (toString (index . 1)) "auto") $known) }}true{{ end -}}
{{- end -}}

{{/* (list context port path): scrapes every Pod, by the headless Service. */}}
{{- define "tollgate.serviceMonitor" -}}
{{- $context := index . 0 -}}
{{- with $context.Values.serviceMonitor -}}
{{- if include "tollgate.wantsPrometheusOperator" (list $context .enabled) -}}
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata:
  {{- include "tollgate.metadata" (list $context "" dict .labels) | nindent 2 }}
spec:
  selector:
    matchLabels:
      {{- include "tollgate.selectorLabels" $context | nindent 6 }}
      app.kubernetes.io/component: headless
  endpoints:
    - port: {{ index $ 1 }}
      path: {{ index $ 2 }}
      interval: {{ .interval }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The alerts of alerts.yaml, about the Pods of this release. */}}
{{- define "tollgate.prometheusRule" -}}
{{- with .Values.prometheusRule -}}
{{- if include "tollgate.wantsPrometheusOperator" (list $ .enabled) -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  {{- include "tollgate.metadata" (list $ "" dict .labels) | nindent 2 }}
spec:
  groups:
    - name: {{ include "tollgate.fullname" $ }}
      rules:
        {{- include "tollgate.ownSeries" (list $ "alerts.yaml") | nindent 8 }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (list context file): a file of queries in which `$OWN` stands for the labels of this release's series. */}}
{{- define "tollgate.ownSeries" -}}
{{- $context := index . 0 -}}
{{- $own := printf "namespace='%s',service='%s-headless'" $context.Release.Namespace (include "tollgate.fullname" $context) -}}
{{- $context.Files.Get (index . 1) | replace "$OWN" $own -}}
{{- end -}}

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
