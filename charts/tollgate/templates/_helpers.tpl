{{/* (list context purpose): a password of development mode, the same at every upgrade. */}}
{{- define "tollgate.devPassword" -}}
{{- printf "%s of %s" (index . 1) (index . 0).Values.dev.secret | sha256sum -}}
{{- end -}}

{{/* Not empty when counters are in the Valkey of development mode. */}}
{{- define "tollgate.devCounters" -}}
{{- /* A part that is disabled has no values. */}}
{{- $settings := .Values.ratelimit.settings | default dict -}}
{{- $secrets := .Values.ratelimit.secretSettings | default dict -}}
{{- $elsewhere := or (ne (toString ($settings.BACKEND_TYPE | default "redis")) "redis") $settings.KVSTORE_URL $secrets.KVSTORE_URL -}}
{{- if and .Values.dev.enabled .Values.ratelimit.enabled (not $elsewhere) }}true{{ end -}}
{{- end -}}

{{- define "tollgate.devName" -}}
{{- (index . 0).Release.Name | trunc 40 | trimSuffix "-" }}-dev-{{ index . 1 -}}
{{- end -}}

{{/* (list context part): labels of a data store. */}}
{{- define "tollgate.devLabels" -}}
app.kubernetes.io/name: dev-{{ index . 1 }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
{{- end -}}

{{/* (list context part): metadata of the objects of a data store. */}}
{{- define "tollgate.devMetadata" -}}
name: {{ include "tollgate.devName" . }}
namespace: {{ (index . 0).Release.Namespace | quote }}
labels:
  {{- include "tollgate.devLabels" . | nindent 2 }}
  app.kubernetes.io/part-of: tollgate
{{- end -}}

{{/* (list context chart): full name of the objects of a part. */}}
{{- define "tollgate.partName" -}}
{{- (index (index . 0).Values (index . 1)).fullnameOverride | default (include "tollgate.fullnameOf" .) -}}
{{- end -}}

{{/* (list context chart): metadata of the Secret or ConfigMap that a part reads by its name. */}}
{{- define "tollgate.partMetadata" -}}
name: {{ include "tollgate.partName" . }}
namespace: {{ (index . 0).Release.Namespace | quote }}
labels:
  app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
  app.kubernetes.io/part-of: tollgate
{{- end -}}

{{/* (list context part port): Service of a StatefulSet. */}}
{{- define "tollgate.devService" -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "tollgate.devMetadata" . | nindent 2 }}
spec:
  clusterIP: None
  selector:
    {{- include "tollgate.devLabels" . | nindent 4 }}
  ports:
    - name: {{ index . 1 }}
      port: {{ index . 2 }}
      targetPort: {{ index . 1 }}
{{- end -}}

{{/*
(dict "context" . "part" name "port" number "image" … "user" id "env" list "args" list "folder" path "scratch" paths "alive" command):
a data store of one Pod, whose data go with it.
*/}}
{{- define "tollgate.devStatefulSet" -}}
{{- $which := list .context .part -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "tollgate.devMetadata" $which | nindent 2 }}
spec:
  serviceName: {{ include "tollgate.devName" $which }}
  replicas: 1
  persistentVolumeClaimRetentionPolicy:
    whenDeleted: Delete
    whenScaled: Retain
  selector:
    matchLabels:
      {{- include "tollgate.devLabels" $which | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "tollgate.devLabels" $which | nindent 8 }}
        app.kubernetes.io/part-of: tollgate
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with .context.Values.global.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ .user }}
        runAsGroup: {{ .user }}
        fsGroup: {{ .user }}
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: {{ .part }}
          image: {{ .image | quote }}
          {{- with .args }}
          args:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          env:
            {{- toYaml .env | nindent 12 }}
          ports:
            - name: {{ .part }}
              containerPort: {{ .port }}
          readinessProbe:
            exec:
              command: [sh, -c, {{ .alive | quote }}]
            periodSeconds: 5
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            requests: {cpu: 50m, memory: 64Mi}
            limits: {memory: 512Mi}
          volumeMounts:
            - name: data
              mountPath: {{ .folder }}
            {{- range $index, $path := .scratch }}
            - name: scratch
              mountPath: {{ $path }}
              subPath: s{{ $index }}
            {{- end }}
      volumes:
        - name: scratch
          emptyDir: {}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        resources:
          requests:
            storage: {{ .context.Values.dev.storage }}
{{- end -}}

{{/* Not empty with a console: `dev.enabled` has one unless the values say otherwise. */}}
{{- define "tollgate.hasConsole" -}}
{{- if kindIs "bool" .Values.console.enabled | ternary .Values.console.enabled .Values.dev.enabled }}true{{ end -}}
{{- end -}}

{{/* Not empty when development mode lets administrators of the auth server use the admin APIs of other parts, for the console. */}}
{{- define "tollgate.devAdministration" -}}
{{- if and .Values.dev.enabled .Values.auth.enabled (include "tollgate.hasConsole" .) }}true{{ end -}}
{{- end -}}

{{/* (list context prefix): the settings of a part for that. The network of the cluster is trusted. */}}
{{- define "tollgate.devAdministrationSettings" -}}
{{- $context := index . 0 -}}
{{- $prefix := index . 1 -}}
{{ $prefix }}_KEYS_URL: http://{{ include "tollgate.partName" (list $context "auth") }}:{{ $context.Values.auth.ports.http }}
{{ $prefix }}_KEYS_TOKEN: {{ include "tollgate.devPassword" (list $context "verifier") }}
{{ $prefix }}_PLAINTEXT: "true"
{{- end -}}

{{/* URL of the console in browsers. That of `dev.enabled` leads to a forwarded port. */}}
{{- define "tollgate.consoleUrl" -}}
{{- .Values.console.settings.CONSOLE_EXTERNAL_URL | default .Values.global.consoleUrl | default (printf "http://localhost:%v" .Values.console.ports.http) -}}
{{- end -}}

{{/* What the console needs to know of the other parts, by setting; empty where one is disabled. */}}
{{- define "tollgate.consoleParts" -}}
{{- $metrics := list -}}
{{- if .Values.auth.enabled }}
{{- $name := include "tollgate.partName" (list . "auth") }}
{{- with .Values.auth.settings.SVC_API_EXTERNAL_URL | default (.Values.dev.enabled | ternary .Values.dev.externalUrl "") }}
CONSOLE_AUTH_ISSUER: {{ . | quote }}
{{- end }}
CONSOLE_AUTH_URL: http://{{ $name }}:{{ .Values.auth.ports.http }}
{{- /* Another address need not be that of these Pods. */}}
{{- if not .Values.console.settings.CONSOLE_AUTH_URL }}
CONSOLE_AUTH_REPLICA_URLS: http://{{ $name }}-headless:{{ .Values.auth.ports.http }}
{{- end }}
{{- if include "auth.servesMetrics" (dict "Values" .Values.auth) }}
{{- $metrics = append $metrics (printf "http://%s-headless:%v/metrics" $name .Values.auth.ports.metrics) }}
{{- end }}
{{- end }}
{{- if .Values.ratelimit.enabled }}
{{- $name := include "tollgate.partName" (list . "ratelimit") }}
{{- if include "ratelimit.servesCounterApi" (dict "Values" .Values.ratelimit) }}
CONSOLE_LIMITER_URLS: https://{{ $name }}-headless.{{ .Release.Namespace }}.svc:{{ index .Values.ratelimit.ports "https-admin" }}
{{- else if or (include "tollgate.devAdministration" .) (and .Values.ratelimit.counterApi.enabled (eq (toString .Values.ratelimit.settings.ADMIN_PLAINTEXT) "true")) }}
CONSOLE_LIMITER_URLS: http://{{ $name }}-headless:{{ index .Values.ratelimit.ports "https-admin" }}
{{- end }}
{{- if include "ratelimit.servesMetrics" (dict "Values" .Values.ratelimit) }}
{{- $path := .Values.ratelimit.settings.PULLMETRICS_PATH | default "/metrics" }}
{{- $metrics = append $metrics (printf "http://%s-headless:%v%s" $name .Values.ratelimit.ports.metrics $path) }}
{{- end }}
{{- end }}
{{- if .Values.xds.enabled }}
{{- $url := printf "http://%s-headless:%v" (include "tollgate.partName" (list . "xds")) .Values.xds.ports.admin }}
CONSOLE_XDS_URL: {{ $url }}
{{- $metrics = append $metrics (printf "%s/metrics" $url) }}
{{- end }}
CONSOLE_METRICS_URLS: {{ join "," $metrics | quote }}
{{- end -}}
