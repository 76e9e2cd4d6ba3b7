{{/* (list context script): a Pod for `helm test` that runs a script of Node.js in the image of the service. */}}
{{- define "tollgate.test" -}}
{{- $context := index . 0 -}}
apiVersion: v1
kind: Pod
metadata:
  name: {{ include "tollgate.fullname" $context }}-test
  namespace: {{ $context.Release.Namespace | quote }}
  labels:
    # Not the name of the service: it must not receive its traffic.
    app.kubernetes.io/name: {{ include "tollgate.name" $context }}-test
    app.kubernetes.io/instance: {{ $context.Release.Name | quote }}
    app.kubernetes.io/part-of: tollgate
  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    {{- toYaml $context.Values.podSecurityContext | nindent 4 }}
  {{- with include "tollgate.imagePullSecrets" $context }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: test
      {{- include "tollgate.image" $context | nindent 6 }}
      args:
        - --input-type=module
        - --eval
        - {{ index . 1 | quote }}
{{- end -}}
