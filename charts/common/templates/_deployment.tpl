{{/*
The Deployment of a service. A dict:
  context         the chart's own `.`
  settings        environment variables that the chart works out from its values; those under `settings` come before them
  readiness       what the readiness probe asks: `httpGet` or `grpc`
  liveness        what the liveness and startup probes ask; nothing that depends on others
  files           volumes by name, each with the `path` where it is mounted and its `source`: `secret` or `configMap`
  defaults        the ConfigMap with settings that Secrets and values override; may be missing
  before          init containers by name: the arguments, in the image and with the environment of the service; may be missing
  labels          more labels of the Pods; may be missing
  asksApiServer   whether the Pods get a token for the API server
*/}}
{{- define "tollgate.deployment" -}}
{{- $context := .context -}}
{{- $values := $context.Values -}}
{{- $annotations := deepCopy $values.annotations -}}
{{- $podAnnotations := deepCopy $values.podAnnotations -}}
{{- with include "tollgate.secretHashes" $context | fromYaml -}}
  {{- with .seen }}{{ $_ := set $annotations "tollgate.dev/secrets" . }}{{ end -}}
  {{- with .pods }}{{ $_ := set $podAnnotations "checksum/secret" . }}{{ end -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "tollgate.metadata" (list $context "" $annotations $values.labels) | nindent 2 }}
spec:
  {{- if not $values.autoscaling.enabled }}
  replicas: {{ $values.replicas }}
  {{- end }}
  {{- with $values.minReadySeconds }}
  minReadySeconds: {{ . }}
  {{- end }}
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  strategy:
    {{- toYaml $values.strategy | nindent 4 }}
  selector:
    matchLabels:
      {{- include "tollgate.selectorLabels" $context | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "tollgate.podLabels" $context | nindent 8 }}
        {{- with .labels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "tollgate.serviceAccountName" $context }}
      automountServiceAccountToken: {{ .asksApiServer | default false }}
      # Variables of Services in the namespace could collide with settings.
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        {{- toYaml $values.podSecurityContext | nindent 8 }}
      {{- include "tollgate.placement" $context | nindent 6 }}
      {{- if or .before $values.extraInitContainers }}
      initContainers:
        {{- with $values.extraInitContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- range $name, $arguments := .before }}
        - name: {{ $name }}
          {{- include "tollgate.image" $context | nindent 10 }}
          args:
            {{- toYaml $arguments | nindent 12 }}
          {{- include "tollgate.environment" $ | nindent 10 }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ $context.Chart.Name }}
          {{- include "tollgate.image" $context | nindent 10 }}
          {{- include "tollgate.environment" . | nindent 10 }}
          ports:
            {{- range $name, $port := $values.ports }}
            - name: {{ $name }}
              containerPort: {{ $port }}
              protocol: TCP
            {{- end }}
          startupProbe:
            {{- merge (dict) .liveness $values.probes.startup | toYaml | nindent 12 }}
          readinessProbe:
            {{- merge (dict) .readiness $values.probes.readiness | toYaml | nindent 12 }}
          livenessProbe:
            {{- merge (dict) .liveness $values.probes.liveness | toYaml | nindent 12 }}
          {{- $lifecycle := deepCopy $values.lifecycle }}
          {{- if and $values.preStopSleepSeconds (not $lifecycle.preStop) }}
            {{- $_ := set $lifecycle "preStop" (dict "sleep" (dict "seconds" $values.preStopSleepSeconds)) }}
          {{- end }}
          {{- with $lifecycle }}
          lifecycle:
            {{- toYaml . | nindent 12 }}
          {{- end }}
        {{- with $values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        # The only writable path.
        - name: tmp
          emptyDir:
            sizeLimit: 64Mi
        {{- range $name, $file := .files }}
        - name: {{ $name }}
          {{- toYaml $file.source | nindent 10 }}
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end -}}

{{/* Scheduling of Pods. */}}
{{- define "tollgate.placement" -}}
{{- with .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{ toYaml . | nindent 4 | trim }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- include "tollgate.selectorLabels" $ | nindent 8 }}
    {{- end }}
    {{- if not .matchLabelKeys }}
    # Per revision: Pods of a new revision are spread independently.
    matchLabelKeys: [pod-template-hash]
    {{- end }}
  {{- end }}
{{- end }}
{{- with include "tollgate.imagePullSecrets" . }}
{{ . }}
{{- end }}
{{- range $field := list "hostAliases" "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "dnsPolicy" "dnsConfig" }}
{{- with index $.Values $field }}
{{- if kindIs "string" . }}
{{ $field }}: {{ . }}
{{- else }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Image, security context and volumes of a container. */}}
{{- define "tollgate.image" -}}
image: {{ include "tollgate.imageReference" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- toYaml .Values.securityContext | nindent 2 }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- end -}}

{{/* Variables and files of a container: the dict of `tollgate.deployment`. */}}
{{- define "tollgate.environment" -}}
{{- $values := .context.Values -}}
env:
  {{- include "tollgate.env" (list .context .settings) | nindent 2 }}
envFrom:
  {{- with .defaults }}
  - configMapRef:
      name: {{ . }}
      optional: true
  {{- end }}
  {{- include "tollgate.envFrom" .context | nindent 2 }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- range $name, $file := .files }}
  - name: {{ $name }}
    mountPath: {{ $file.path }}
    readOnly: true
  {{- end }}
  {{- with $values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* (list secret path keys): an entry of `files`, readable for the group of the Pod. With keys, Pods wait until the Secret has them. */}}
{{- define "tollgate.secretFiles" -}}
path: {{ index . 1 }}
source:
  secret:
    secretName: {{ index . 0 }}
    defaultMode: 0440
    {{- if gt (len .) 2 }}
    items:
      {{- range index . 2 }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
    {{- end }}
{{- end -}}

{{/* (list configMap path): an entry of `files`. */}}
{{- define "tollgate.configFiles" -}}
path: {{ index . 1 }}
source:
  configMap:
    name: {{ index . 0 }}
{{- end -}}
