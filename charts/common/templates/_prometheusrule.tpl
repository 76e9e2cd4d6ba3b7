{{/*
The alerts of alerts.yaml for the Pods of this release. An alert of a sum has no labels of its own:
two releases would share it.
*/}}
{{- define "tollgate.prometheusRule" -}}
{{- with .Values.prometheusRule -}}
{{- if include "tollgate.wantsPrometheusOperator" (list $ .enabled) -}}
{{- $scraped := include "tollgate.wantsPrometheusOperator" (list $ $.Values.serviceMonitor.enabled) -}}
{{- $own := dict "namespace" $.Release.Namespace "service" (printf "%s-headless" (include "tollgate.fullname" $)) -}}
{{- $runbooks := .runbookUrl | default (printf "https://github.com/tollgate-dev/tollgate/blob/v%s/docs/alerts.md" $.Chart.AppVersion) -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  {{- include "tollgate.metadata" (list $ "" dict .labels) | nindent 2 }}
spec:
  groups:
    - name: {{ include "tollgate.fullname" $ }}
      rules:
        {{- range include "tollgate.ownSeries" (list $ "alerts.yaml") | fromYamlArray }}
        {{- /* Targets of another scrape configuration have other labels and would always be missing. */}}
        {{- if and (or $scraped (not (regexMatch "\\bup\\{" .expr))) (not (has .alert $.Values.prometheusRule.disabledAlerts)) }}
        {{- $_ := set . "labels" (merge dict $own .labels $.Values.prometheusRule.alertLabels) }}
        {{- $_ := set .annotations "runbook_url" (printf "%s#%s" $runbooks (lower .alert)) }}
        - {{ toYaml . | nindent 10 | trim }}
        {{- end }}
        {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
