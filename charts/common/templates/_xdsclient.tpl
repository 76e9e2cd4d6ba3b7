{{/* Clients of the xDS server: `values` has its address and `tls`. */}}

{{/* (list context values): host:port of the xDS server. */}}
{{- define "tollgate.xdsAddress" -}}
{{- (index . 1).address | default (printf "%s-headless:18000" (include "tollgate.fullnameOf" (list (index . 0) "xds"))) -}}
{{- end -}}

{{/* (list context values): the Secret with the client certificate for the xDS server. */}}
{{- define "tollgate.xdsTlsSecret" -}}
{{- $context := index . 0 -}}
{{- $ofServer := printf "%s-client" (include "tollgate.fullnameOf" (list $context "xds")) -}}
{{- (index . 1).tls.existingSecret | default ($context.Values.certManager.enabled | ternary (printf "%s-xds-client" (include "tollgate.fullname" $context)) $ofServer) -}}
{{- end -}}

{{/*
(dict "context" . "values" … "settings" … "files" … "names" dict of address, nodeId, tls, ca, cert and key): adds the settings of a client
by their names, and the files of its certificate.
*/}}
{{- define "tollgate.setXdsClient" -}}
{{- $names := .names -}}
{{- $mode := .values.tls.mode -}}
{{- $_ := set .settings $names.address (include "tollgate.xdsAddress" (list .context .values)) -}}
{{- $_ := set .settings $names.nodeId "$(POD_NAME)" -}}
{{- $_ := set .settings $names.tls (ne $mode "none") -}}
{{- if eq $mode "mutual" -}}
{{- $folder := "/etc/tollgate/xds-client" -}}
{{- $secret := include "tollgate.xdsTlsSecret" (list .context .values) -}}
{{- $_ := set .files "xds-client" (include "tollgate.secretFiles" (list $secret $folder (list "ca.crt" "tls.crt" "tls.key")) | fromYaml) -}}
{{- $_ := set .settings $names.ca (printf "%s/ca.crt" $folder) -}}
{{- $_ := set .settings $names.cert (printf "%s/tls.crt" $folder) -}}
{{- $_ := set .settings $names.key (printf "%s/tls.key" $folder) -}}
{{- end -}}
{{- end -}}

{{/* The client certificate of cert-manager for the xDS server. */}}
{{- define "tollgate.xdsClientCertificate" -}}
{{- $dnsNames := list (printf "%s.%s" (include "tollgate.fullname" .) .Release.Namespace) -}}
{{- include "tollgate.certificate" (dict "context" . "suffix" "-xds-client" "usages" (list "digital signature" "client auth") "dnsNames" $dnsNames) -}}
{{- end -}}
