{{/* Values that become environment variables. */}}

{{/* A value as text. Helm reads numbers as floats, and would write a million as 1e+06. */}}
{{- define "tollgate.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* (list context settings): `env` of a container. The values under `settings` come before those that the chart works out. */}}
{{- define "tollgate.env" -}}
{{- $context := index . 0 -}}
{{- $settings := deepCopy (index . 1) -}}
{{- range $name, $value := $context.Values.settings }}
  {{- if not (kindIs "invalid" $value) }}{{ $_ := set $settings $name $value }}{{ end }}
{{- end -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
{{- with $context.Values.nodeOptions }}
- name: NODE_OPTIONS
  value: {{ . | quote }}
{{- end }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ include "tollgate.text" $value | quote }}
{{- end }}
{{- range $name, $key := $context.Values.secretSettings }}
  {{- with $key }}
  {{- if not (kindIs "invalid" (index $context.Values.settings $name)) }}
    {{- fail (printf "settings.%s and secretSettings.%s both say what it is: leave one of them out" $name $name) }}
  {{- end }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      {{- toYaml . | nindent 6 }}
  {{- end }}
{{- end }}
{{- with $context.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* `envFrom` of a container. */}}
{{- define "tollgate.envFrom" -}}
- secretRef:
    name: {{ include "tollgate.secretName" . }}
    {{- if not .Values.existingSecret }}
    # Not everybody has one.
    optional: true
    {{- end }}
{{- with .Values.extraEnvFrom }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What the Secrets hold now, so that Pods restart when it has changed. Without a cluster (helm template) it is the same always. */}}
{{- define "tollgate.secretChecksum" -}}
{{- $namespace := .Release.Namespace -}}
{{- $names := list (include "tollgate.secretName" .) -}}
{{- range .Values.secretSettings }}{{ with . }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- $data := list -}}
{{- range $names | uniq | sortAlpha }}{{ $data = append $data (lookup "v1" "Secret" $namespace .).data }}{{ end -}}
{{- toJson $data | sha256sum -}}
{{- end -}}
