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
      {{- with .scrapeTimeout }}
      scrapeTimeout: {{ . }}
      {{- end }}
      {{- with .relabelings }}
      relabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .metricRelabelings }}
      metricRelabelings:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
