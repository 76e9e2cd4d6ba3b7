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
