{{/* (list context ports): ports of a Service, by their names in `ports`. The name marks gRPC and HTTPS. */}}
{{- define "tollgate.servicePorts" -}}
{{- $context := index . 0 -}}
{{- range index . 1 }}
- name: {{ . }}
  port: {{ index $context.Values.ports . }}
  targetPort: {{ . }}
  protocol: TCP
  appProtocol: {{ regexFind "^(grpc|https)" . | default "http" }}
{{- end }}
{{- end -}}

{{/* (list context ports): the Service. */}}
{{- define "tollgate.service" -}}
{{- $context := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "tollgate.metadata" (list $context "" $context.Values.service.annotations $context.Values.service.labels) | nindent 2 }}
spec:
  type: {{ $context.Values.service.type }}
  {{- range $field := list "ipFamilyPolicy" "externalTrafficPolicy" "internalTrafficPolicy" "loadBalancerClass" }}
  {{- with index $context.Values.service $field }}
  {{ $field }}: {{ . }}
  {{- end }}
  {{- end }}
  {{- with $context.Values.service.loadBalancerSourceRanges }}
  loadBalancerSourceRanges:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    {{- include "tollgate.selectorLabels" $context | nindent 4 }}
  ports:
    {{- include "tollgate.servicePorts" . | nindent 4 }}
{{- end -}}

{{/*
(list context ports): a Service without an address of its own. Its name stands for the addresses of all Pods: a gRPC client
keeps its connection, and behind one address all its calls would go to one Pod. Metrics are read from every Pod by it, too.
*/}}
{{- define "tollgate.headlessService" -}}
{{- $context := index . 0 -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "tollgate.metadata" (list $context "-headless" $context.Values.service.annotations (merge (dict "app.kubernetes.io/component" "headless") $context.Values.service.labels)) | nindent 2 }}
spec:
  type: ClusterIP
  clusterIP: None
  {{- with $context.Values.service.ipFamilyPolicy }}
  ipFamilyPolicy: {{ . }}
  {{- end }}
  selector:
    {{- include "tollgate.selectorLabels" $context | nindent 4 }}
  ports:
    {{- include "tollgate.servicePorts" . | nindent 4 }}
{{- end -}}
