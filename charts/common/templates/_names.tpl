{{/* Names. */}}

{{- define "tollgate.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of all objects of a chart: <release>-<chart>, or the release alone when it has the name of the chart in it. */}}
{{- define "tollgate.fullname" -}}
{{- .Values.fullnameOverride | default (include "tollgate.fullnameOf" (list . (include "tollgate.name" .))) -}}
{{- end -}}

{{/* (list context name): full name in another chart of the release; 40 characters leave space for suffixes. */}}
{{- define "tollgate.fullnameOf" -}}
{{- $release := (index . 0).Release.Name -}}
{{- $name := index . 1 -}}
{{- contains $name $release | ternary $release (printf "%s-%s" $release $name) | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "tollgate.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "tollgate.fullname" .) "default") -}}
{{- end -}}

{{/* The Secret whose keys become environment variables. */}}
{{- define "tollgate.secretName" -}}
{{- .Values.existingSecret | default (include "tollgate.fullname" .) -}}
{{- end -}}

{{- define "tollgate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tollgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{/* Labels of Pods, without the chart version, so that a new version alone does not restart them. */}}
{{- define "tollgate.podLabels" -}}
{{- $own := merge (include "tollgate.selectorLabels" . | fromYaml) (dict "app.kubernetes.io/part-of" "tollgate") -}}
{{- merge (dict) $own .Values.podLabels .Values.commonLabels | toYaml -}}
{{- end -}}

{{- define "tollgate.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tollgate.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tollgate
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tollgate.labels" -}}
{{- merge (dict) (include "tollgate.ownLabels" . | fromYaml) .Values.commonLabels | toYaml -}}
{{- end -}}

{{/* (list context suffix annotations labels): name, namespace, labels of an object. All but the context may be empty or missing. */}}
{{- define "tollgate.metadata" -}}
{{- $context := index . 0 -}}
{{- $labels := gt (len .) 3 | ternary (last .) dict -}}
name: {{ include "tollgate.fullname" $context }}{{ if gt (len .) 1 }}{{ index . 1 }}{{ end }}
namespace: {{ $context.Release.Namespace | quote }}
labels:
  {{- merge (dict) (include "tollgate.ownLabels" $context | fromYaml) $labels $context.Values.commonLabels | toYaml | nindent 2 }}
{{- if gt (len .) 2 }}
{{- with index . 2 }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The registry of the releases goes with their repository: another one is found as the values say.
*/}}
{{- define "tollgate.imageReference" -}}
{{- $registry := .Values.image.registry | default (.Values.global).imageRegistry -}}
{{- $repository := .Values.image.repository -}}
{{- if not $repository -}}
  {{- $repository = printf "tollgate/%s" .Chart.Name -}}
  {{- $registry = $registry | default "ghcr.io/tollgate-dev" -}}
{{- end -}}
{{- $reference := .Values.image.tag | default .Chart.AppVersion | printf ":%s" -}}
{{- with .Values.image.digest }}{{ $reference = printf "@%s" . }}{{ end -}}
{{- with $registry }}{{ . }}/{{ end }}{{ $repository }}{{ $reference -}}
{{- end -}}

{{/* `imagePullSecrets` of a Pod; empty without any. */}}
{{- define "tollgate.imagePullSecrets" -}}
{{- with concat ((.Values.global).imagePullSecrets | default list) .Values.imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}
