{{/* Values that become environment variables. */}}

{{/* A value as string. Helm parses numbers as floats and would write 1000000 as 1e+06. */}}
{{- define "tollgate.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{/* (list context settings): `env` of a container. `settings` overrides derived values. */}}
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
    # Optional.
    optional: true
    {{- end }}
{{- with .Values.extraEnvFrom }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/*
Hashes of what the Secrets hold, as a dict: `seen` at this upgrade, an annotation of the Deployment,
and `pods`, one of the Pods, which is replaced only when the Secrets were seen before and have
changed since. Pods that waited for a Secret have read it when they started, so that a Secret made
after an installation restarts nothing, unless the Pods were available before it existed. Empty
without a cluster (helm template, Argo CD).
*/}}
{{- define "tollgate.secretHashes" -}}
{{- $names := list (include "tollgate.secretName" .) -}}
{{- range .Values.secretSettings }}{{ with . }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- range .Values.extraEnvFrom }}{{ with .secretRef }}{{ $names = append $names .name }}{{ end }}{{ end -}}
{{- $data := list -}}
{{- $newest := "" -}}
{{- range $names | uniq | sortAlpha -}}
  {{- with lookup "v1" "Secret" $.Release.Namespace . -}}
    {{- $data = append $data (list .metadata.name .data) -}}
    {{- if gt .metadata.creationTimestamp $newest }}{{ $newest = .metadata.creationTimestamp }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (include "tollgate.fullname" .) -}}
{{- $seen := dig "metadata" "annotations" "tollgate.dev/secrets" "" $deployment -}}
{{- $pods := dig "spec" "template" "metadata" "annotations" "checksum/secret" "" $deployment -}}
{{- $now := $data | empty | ternary $seen (toJson $data | sha256sum) -}}
{{- $ranBefore := false -}}
{{- range dig "status" "conditions" list $deployment -}}
  {{- if and (eq .type "Available") (eq .status "True") (lt .lastTransitionTime $newest) }}{{ $ranBefore = true }}{{ end -}}
{{- end -}}
{{- if and (ne $now $seen) (or $seen $ranBefore) }}{{ $pods = $now }}{{ end -}}
{{- dict "seen" $now "pods" $pods | toYaml -}}
{{- end -}}

{{/*
(list context variable names): not empty when a setting is given, or may be: what a Secret or a
ConfigMap holds is not known here. `names` are all names under which a variable may set it; only its
own when missing.
*/}}
{{- define "tollgate.maySet" -}}
{{- $values := (index . 0).Values -}}
{{- $variable := index . 1 -}}
{{- $names := gt (len .) 2 | ternary (last .) (list $variable) -}}
{{- $given := or (index $values.settings $variable) (index ($values.secretSettings | default dict) $variable) $values.existingSecret $values.extraEnvFrom -}}
{{- range $values.extraEnv }}{{ if has .name $names }}{{ $given = true }}{{ end }}{{ end -}}
{{- if $given }}true{{ end -}}
{{- end -}}
