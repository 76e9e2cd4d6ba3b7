{{- define "tollgate.podDisruptionBudget" -}}
{{- $pods := .Values.autoscaling.enabled | ternary .Values.autoscaling.minReplicas .Values.replicas -}}
{{- if and .Values.podDisruptionBudget.enabled (gt (int $pods) 1) -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "tollgate.metadata" (list .) | nindent 2 }}
spec:
  {{- if ne (toString .Values.podDisruptionBudget.minAvailable) "" }}
  minAvailable: {{ .Values.podDisruptionBudget.minAvailable }}
  {{- else }}
  maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}
  {{- end }}
  # Pods that are not ready can always be evicted.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "tollgate.selectorLabels" . | nindent 6 }}
{{- end -}}
{{- end -}}
