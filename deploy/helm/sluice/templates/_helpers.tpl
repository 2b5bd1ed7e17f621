{{- define "sluice.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "sluice.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "sluice.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{ include "sluice.selector" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ include "sluice.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/*
Refuses an upgrade that changes the labels by which a Deployment or a StatefulSet selects its pods. Kubernetes doesn't allow such a change.
`live` is the object in the cluster: (dict "root" . "live" …)
*/}}
{{- define "sluice.sameSelector" -}}
{{- $was := dig "spec" "selector" "matchLabels" "app.kubernetes.io/name" "" .live -}}
{{- if and $was (ne $was (include "sluice.name" .root)) -}}
{{- fail (printf "nameOverride (%s): %s selects its pods by the name %s, and Kubernetes doesn't allow a change of this name. Give fullnameOverride another name too, or leave nameOverride as it was" (include "sluice.name" .root) .live.metadata.name $was) -}}
{{- end -}}
{{- end -}}

{{/* Renders one line that describes the volumes of a StatefulSet: (dict "persistent" … "size" … "storageClass" …) */}}
{{- define "sluice.fixedState" -}}
{{- if .persistent -}}{{ printf "size %s, storage class %s" .size (.storageClass | default "of the cluster") }}{{- else -}}not persistent{{- end -}}
{{- end -}}

{{/*
Refuses an upgrade that changes the volumes of a StatefulSet. Kubernetes doesn't allow such a change:
(dict "path" "worker.state" "fixed" … "live" … "name" … "namespace" …)
*/}}
{{- define "sluice.sameState" -}}
{{- if ne .fixed (dig "metadata" "annotations" "sluice/fixed-state" .fixed .live) -}}
{{- fail (printf "%s (%s): Kubernetes doesn't allow a change of a StatefulSet's volumes, and those of %s are different (%s). Leave %s as it was. Or delete the StatefulSet without its pods, which keep running, and then upgrade again:\n  kubectl delete statefulset %s --namespace %s --cascade=orphan\n" .path .fixed .name (index .live.metadata.annotations "sluice/fixed-state") .path .name .namespace) -}}
{{- end -}}
{{- end -}}

{{/*
Renders the field `replicas`, or nothing: (dict "root" . "live" … "values" … "name" …). Pass the `name` of a StatefulSet whose pods may run
without it, after the command that sluice.sameState advises.
If an autoscaler is on, the field has the present number of pods. Without the field, a StatefulSet that is created again would get one pod, and
an upgrade that removes the field would set the number to one.
If no revision has had the field, this revision doesn't get it either: a later rollback to this revision would set its number, and remove pods.
*/}}
{{- define "sluice.replicas" -}}
{{- $scaling := .values.autoscaling -}}
{{- if not $scaling.enabled -}}
replicas: {{ .values.replicas }}
{{- else if .live -}}
{{- if not (include "sluice.isCountedByScaler" .) -}}
replicas: {{ max (int $scaling.minReplicas) (int .live.spec.replicas) }}
{{- end -}}
{{- else if include "sluice.podsLeft" . -}}
replicas: {{ max (int $scaling.minReplicas) (include "sluice.podsLeft" . | int) }}
{{- end -}}
{{- end -}}

{{/*
Renders `true` if an autoscaler is on and no revision has had the field `replicas`, and nothing otherwise. At 0 pods it renders nothing too: an
autoscaler pauses at 0, and only the field starts pods again.
*/}}
{{- define "sluice.isCountedByScaler" -}}
{{- if not .values.autoscaling.enabled -}}
{{- else if not .live -}}
{{- if not (include "sluice.podsLeft" .) -}}true{{- end -}}
{{- else if hasKey (dig "metadata" "annotations" dict .live) "sluice/counted-by" -}}
{{- if gt (int .live.spec.replicas) 0 -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Renders the number of pods that run although their StatefulSet was deleted, or nothing if there are none. */}}
{{- define "sluice.podsLeft" -}}
{{- if and .name .root.Release.IsUpgrade -}}
{{- $count := 0 -}}
{{- range (lookup "v1" "Pod" .root.Release.Namespace "").items -}}
{{- if regexMatch (printf "^%s-[0-9]+$" $.name) .metadata.name -}}
{{- $count = max $count (add1 (trimPrefix (printf "%s-" $.name) .metadata.name | int)) -}}
{{- end -}}
{{- end -}}
{{- if $count }}{{ $count }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "sluice.image" -}}
{{- $repository := required "image.repository is empty, and the chart has no default. Build the image in the root of the repository and push it (docker build -f deploy/Dockerfile -t REGISTRY/sluice:VERSION . && docker push REGISTRY/sluice:VERSION). Then set image.repository=REGISTRY/sluice,image.tag=VERSION" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "sluice.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ include "sluice.fullname" . }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* Renders a duration, such as 1500ms, 10s or 2m, in whole seconds, rounded up. */}}
{{- define "sluice.seconds" -}}
{{- if hasSuffix "ms" . -}}{{ divf (trimSuffix "ms" . | float64) 1000 | ceil | int }}
{{- else if hasSuffix "s" . -}}{{ trimSuffix "s" . | int }}
{{- else if hasSuffix "m" . -}}{{ mul (trimSuffix "m" . | int) 60 }}
{{- else -}}{{ fail (printf "%q is not a duration. Examples: 10s, 2m" .) }}
{{- end -}}
{{- end -}}

{{/* Renders the whole CPUs of a quantity, such as 2 for 2500m, but at least 1. */}}
{{- define "sluice.wholeCpus" -}}
{{- $cpus := toString . -}}
{{- if hasSuffix "m" $cpus -}}{{ max 1 (div (trimSuffix "m" $cpus | int) 1000) }}
{{- else -}}{{ max 1 ($cpus | float64 | floor | int) }}
{{- end -}}
{{- end -}}

{{/* Renders the number of processes of a worker pod. Sluice can't choose it itself: without a CPU limit, Node.js counts all CPUs of the node. */}}
{{- define "sluice.processes" -}}
{{- if .Values.worker.processes -}}
{{ .Values.worker.processes | int }}
{{- else -}}
{{- $resources := .Values.worker.resources | default dict -}}
{{- $cpu := dig "limits" "cpu" (dig "requests" "cpu" "1" $resources) $resources -}}
{{ min (include "sluice.wholeCpus" $cpu | int) (int .Values.topics.partitions) }}
{{- end -}}
{{- end -}}

{{/* Renders the largest useful number of worker pods. Further pods would get no partition. */}}
{{- define "sluice.podCeiling" -}}
{{- $processes := include "sluice.processes" . | int -}}
{{ max 1 (div (sub (add (int .Values.topics.partitions) $processes) 1) $processes) }}
{{- end -}}

{{/* Renders the most worker pods that an autoscaler may ask for. It is never less than `minReplicas`. */}}
{{- define "sluice.maxReplicas" -}}
{{- $ceiling := include "sluice.podCeiling" . | int -}}
{{- $wanted := .Values.worker.autoscaling.maxReplicas | default $ceiling | int -}}
{{ max (int .Values.worker.autoscaling.minReplicas) (min $wanted $ceiling) }}
{{- end -}}

{{/* Is empty if the login to Kafka needs no Secret: there is none, or the pods log in with their role in AWS. */}}
{{- define "sluice.hasLogin" -}}
{{- if not (has .Values.kafka.sasl.mechanism (list "none" "aws-iam")) }}true{{ end -}}
{{- end -}}

{{/* Renders those keys of a Secret that a pod needs. The Secrets of other products also have keys that no pod should have. */}}
{{- define "sluice.items" -}}
items:
  {{- range without . "" }}
  - { key: {{ . | quote }}, path: {{ . | quote }} }
  {{- end }}
{{- end -}}

{{/* Renders the variables of a login to Kafka: the user name or client id, and the file with the password or client secret. */}}
{{- define "sluice.login" }}
{{- $secret := required "kafka.sasl.existingSecret is empty: name an existing Secret with the login" .of.existingSecret }}
- name: {{ .id }}
  {{- if get . "is" }}
  value: {{ .is | quote }}
  {{- else }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
      key: {{ .idKey }}
  {{- end }}
- name: {{ .secret }}
  value: /etc/sluice-kafka/login/{{ .secretKey }}
{{- end -}}

{{/* Renders the text of a setting. Helm reads numbers in values as floats, and would write 8000000 as 8e+06. */}}
{{- define "sluice.settingText" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{ printf "%.0f" . }}{{- else -}}{{ toString . }}{{- end -}}
{{- end -}}

{{/* Lists the variables that the chart sets with these values. For each variable, it names the value of the chart that determines it. */}}
{{- define "sluice.computed" -}}
SLUICE_ADMIN_HOST: listenHost
SLUICE_ADMIN_TOKENS_FILE: admin.tokens
SLUICE_CATALOG_FILE: catalog
SLUICE_CATALOG_SOURCE: catalog.keysSecret
SLUICE_CLICKHOUSE_DATABASE: deliveryLog.clickhouse.database
SLUICE_CLICKHOUSE_URL: deliveryLog.clickhouse.url
SLUICE_CLICKHOUSE_USER: deliveryLog.clickhouse.user
SLUICE_GATEWAY_HOST: listenHost
SLUICE_GATEWAY_SHUTDOWN_DELAY: gateway.shutdownDelay
SLUICE_ADMIN_PUBLIC_URL: admin.publicUrl
SLUICE_ADMIN_TRUSTED_PROXIES: admin.trustedProxies
SLUICE_GATEWAY_TRUSTED_PROXIES: gateway.trustedProxies
SLUICE_HTTP_HOST: listenHost
SLUICE_INDEX_FOLDER: deliveryLog.index.state
SLUICE_INDEX_HOST: listenHost
SLUICE_KAFKA_BROKERS: kafka.brokers
SLUICE_KAFKA_INSTANCE_ID: worker.instanceIdPrefix
SLUICE_KAFKA_LEAVE_ON_STOP: worker.leaveOnStop
SLUICE_KAFKA_SSL: kafka.ssl
SLUICE_KAFKA_TOPIC_PREFIX: kafka.topicPrefix
SLUICE_REGISTRY_URL: registry.url
SLUICE_SHUTDOWN_TIMEOUT: shutdownTimeout
SLUICE_STATE_FOLDER: worker.state
SLUICE_TOPICS_GENERATION: topics.generation
SLUICE_TOPICS_MIN_INSYNC: topics.minInsync
SLUICE_TOPICS_PARTITIONS: topics.partitions
SLUICE_TOPICS_REPLICATION: topics.replication
SLUICE_WORKER_PROCESSES: worker.processes
{{- if or .Values.kafka.tls.existingSecret .Values.kafka.tls.caSecret }}
SLUICE_KAFKA_CA_FILE: kafka.tls
{{- end }}
{{- if .Values.kafka.tls.existingSecret }}
SLUICE_KAFKA_CERT_FILE: kafka.tls
SLUICE_KAFKA_KEY_FILE: kafka.tls
{{- end }}
{{- with .Values.kafka.sasl.mechanism }}
{{- if ne . "none" }}
SLUICE_KAFKA_SASL_MECHANISM: kafka.sasl.mechanism
{{- end }}
{{- if eq . "oauthbearer" }}
SLUICE_KAFKA_OAUTH_CLIENT_ID: kafka.sasl.existingSecret
SLUICE_KAFKA_OAUTH_CLIENT_SECRET: kafka.sasl.existingSecret
SLUICE_KAFKA_OAUTH_CLIENT_SECRET_FILE: kafka.sasl.existingSecret
{{- else if not (has . (list "none" "aws-iam")) }}
SLUICE_KAFKA_SASL_PASSWORD: kafka.sasl.existingSecret
SLUICE_KAFKA_SASL_PASSWORD_FILE: kafka.sasl.existingSecret
SLUICE_KAFKA_SASL_USERNAME: kafka.sasl.existingSecret
{{- end }}
{{- end }}
{{- if .Values.catalog.variablesSecret }}
SLUICE_CATALOG_VARIABLES_FOLDER: catalog.variablesSecret
{{- end }}
{{- if .Values.catalog.keysSecret }}
SLUICE_CATALOG_KEYS_FILE: catalog.keysSecret
{{- end }}
{{- if .Values.registry.existingSecret }}
SLUICE_REGISTRY_PASSWORD: registry.existingSecret
SLUICE_REGISTRY_PASSWORD_FILE: registry.existingSecret
SLUICE_REGISTRY_USERNAME: registry.existingSecret
{{- end }}
{{- if .Values.proxy.existingSecret }}
SLUICE_DELIVERY_PROXY: proxy.existingSecret
{{- end }}
{{- if or .Values.deliveryLog.existingSecret (include "sluice.userKey" .) }}
{{- $way := "deliveryLog.userKeyKey" -}}
{{- if eq (include "sluice.userKey" .) "made" }}{{ $way = "deliveryLog.userKeyKey (or deliveryLog.userKey.create=false)" }}{{ end }}
SLUICE_ATTEMPTS_USER_KEY: {{ $way }}
SLUICE_ATTEMPTS_USER_KEY_FILE: {{ $way }}
{{- end }}
{{- if .Values.deliveryLog.index.enabled }}
SLUICE_INDEX_TOKEN: deliveryLog.tokenKey
SLUICE_INDEX_TOKEN_FILE: deliveryLog.tokenKey
SLUICE_INDEX_URL: deliveryLog.index.enabled
{{- end }}
{{- if .Values.deliveryLog.clickhouse.existingSecret }}
SLUICE_CLICKHOUSE_PASSWORD: deliveryLog.clickhouse.existingSecret
SLUICE_CLICKHOUSE_PASSWORD_FILE: deliveryLog.clickhouse.existingSecret
{{- end }}
{{- end -}}

{{/* Lists the ports that containers, probes and Services share. No value changes them. */}}
{{- define "sluice.fixedPorts" -}}
SLUICE_ADMIN_PORT: 9420
SLUICE_GATEWAY_PORT: 8080
SLUICE_HTTP_PORT: 9400
SLUICE_INDEX_PORT: 9410
{{- end -}}

{{/* Refuses settings of variables that the chart sets itself. They would contradict the chart's probes, grace periods and volumes. */}}
{{- define "sluice.refuseComputed" -}}
{{- $computed := include "sluice.computed" . | fromYaml -}}
{{- $ports := include "sluice.fixedPorts" . | fromYaml -}}
{{- range $name, $_ := .Values.settings -}}
{{- with index $computed $name -}}
{{- fail (printf "settings.%s: the chart sets this variable itself, together with other parts that have to match it. Use %s instead" $name .) -}}
{{- end -}}
{{- with index $ports $name -}}
{{- fail (printf "settings.%s: containers, probes and Services of the chart have the port %v. Remove this setting. The ports for clients are gateway.service.port and admin.service.port" $name .) -}}
{{- end -}}
{{- include "sluice.refuseUnknown" (dict "root" $ "where" "settings." "name" $name) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- $name := .name -}}
{{- with index $computed $name -}}
{{- fail (printf "extraEnv: the chart sets %s itself, together with other parts that have to match it. Use %s instead" $name .) -}}
{{- end -}}
{{- include "sluice.refuseUnknown" (dict "root" $ "where" "extraEnv: " "name" $name) -}}
{{- if hasKey $ports $name -}}
{{- fail (printf "extraEnv: containers, probes and Services of the chart have the port %v. Remove %s" (index $ports $name) $name) -}}
{{- end -}}
{{- if hasKey ($.Values.settings | default dict) $name -}}
{{- fail (printf "extraEnv: settings has %s already. Remove one of them" $name) -}}
{{- end -}}
{{- if and (eq $name "NODE_EXTRA_CA_CERTS") $.Values.trustedCertificates.existingConfigMap -}}
{{- fail "extraEnv: the chart sets NODE_EXTRA_CA_CERTS itself, since trustedCertificates.existingConfigMap is set. Put all certificates into that ConfigMap" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Refuses a variable that no setting has: (dict "root" . "where" "settings." "name" "SLUICE_X"). It names the setting that is spelled most like it:
the one with the fewest letters between the common beginning and the common end.
*/}}
{{- define "sluice.refuseUnknown" -}}
{{- $known := .root.Files.Get "files/settings.txt" | trim | splitList "\n" -}}
{{- if and (hasPrefix "SLUICE_" .name) (not (has .name $known)) -}}
{{- $given := .name -}}
{{- $best := "" -}}
{{- $fewest := 4 -}}
{{- range $one := $known -}}
{{- $short := min (len $one) (len $given) | int -}}
{{- $ahead := 0 -}}
{{- $behind := 0 -}}
{{- range $count := untilStep 1 (add1 $short | int) 1 -}}
{{- if hasPrefix (substr 0 $count $given) $one }}{{ $ahead = $count }}{{ end -}}
{{- if hasSuffix (substr (sub (len $given) $count | int) (len $given) $given) $one }}{{ $behind = $count }}{{ end -}}
{{- end -}}
{{- $apart := sub (max (len $one) (len $given)) (min $short (add $ahead $behind)) | int -}}
{{- if lt $apart $fewest }}{{ $best = $one }}{{ $fewest = $apart }}{{ end -}}
{{- end -}}
{{- fail (printf "%s%s: there is no such setting. %s" .where .name ($best | empty | ternary "docs/configuration.md lists all of them" (printf "Did you mean %s?" $best))) -}}
{{- end -}}
{{- end -}}

{{/* Renders the variables of every container. They are part of the pod template, so that a change of them replaces the pods. */}}
{{- define "sluice.env" -}}
{{- include "sluice.refuseComputed" . -}}
- name: SLUICE_KAFKA_BROKERS
  value: {{ join "," .Values.kafka.brokers | required "kafka.brokers is empty: name a few brokers, each as host:port" | quote }}
- name: SLUICE_KAFKA_TOPIC_PREFIX
  value: {{ .Values.kafka.topicPrefix | quote }}
- name: SLUICE_KAFKA_SSL
  value: {{ .Values.kafka.ssl | quote }}
{{- with .Values.kafka.tls }}
{{- if .caSecret }}
- name: SLUICE_KAFKA_CA_FILE
  value: /etc/sluice-kafka/ca/{{ required "kafka.tls.caKey is empty: name the key in kafka.tls.caSecret" .caKey }}
{{- end }}
{{- if .existingSecret }}
{{- range $variable, $key := dict "CA" (empty .caSecret | ternary .caKey "") "CERT" .certKey "KEY" .keyKey }}
{{- if $key }}
- name: SLUICE_KAFKA_{{ $variable }}_FILE
  value: /etc/sluice-kafka/tls/{{ $key }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.kafka.sasl }}
{{- if ne .mechanism "none" }}
- name: SLUICE_KAFKA_SASL_MECHANISM
  value: {{ .mechanism }}
{{- end }}
{{- if eq .mechanism "oauthbearer" }}
{{- include "sluice.login" (dict "of" . "id" "SLUICE_KAFKA_OAUTH_CLIENT_ID" "idKey" .clientIdKey "secret" "SLUICE_KAFKA_OAUTH_CLIENT_SECRET_FILE" "secretKey" .clientSecretKey) }}
{{- else if not (has .mechanism (list "none" "aws-iam")) }}
{{- include "sluice.login" (dict "of" . "id" "SLUICE_KAFKA_SASL_USERNAME" "is" .username "idKey" .usernameKey "secret" "SLUICE_KAFKA_SASL_PASSWORD_FILE" "secretKey" .passwordKey) }}
{{- end }}
{{- end }}
- name: SLUICE_TOPICS_PARTITIONS
  value: {{ .Values.topics.partitions | quote }}
- name: SLUICE_TOPICS_GENERATION
  value: {{ .Values.topics.generation | quote }}
- name: SLUICE_TOPICS_REPLICATION
  value: {{ .Values.topics.replication | quote }}
- name: SLUICE_TOPICS_MIN_INSYNC
  value: {{ .Values.topics.minInsync | quote }}
- name: SLUICE_SHUTDOWN_TIMEOUT
  value: {{ .Values.shutdownTimeout }}
{{- if .Values.catalog.keysSecret }}
- name: SLUICE_CATALOG_SOURCE
  value: topic
{{- end }}
- name: SLUICE_HTTP_HOST
  value: {{ .Values.listenHost | quote }}
{{- if .Values.trustedCertificates.existingConfigMap }}
- name: NODE_EXTRA_CA_CERTS
  value: /etc/ssl/sluice/{{ .Values.trustedCertificates.key }}
{{- end }}
{{- range $name, $value := .Values.settings }}
- name: {{ $name }}
  value: {{ include "sluice.settingText" $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Renders the variables for roles that read the catalog. */}}
{{- define "sluice.catalogEnv" -}}
{{- if .Values.catalog.keysSecret }}
- name: SLUICE_CATALOG_KEYS_FILE
  value: /etc/sluice-catalog-keys/{{ .Values.catalog.keysKey }}
{{- else }}
- name: SLUICE_CATALOG_FILE
  value: {{ .Values.catalog.folder | ternary "/etc/sluice" "/etc/sluice/catalog.yaml" }}
{{- end }}
{{- if .Values.catalog.variablesSecret }}
- name: SLUICE_CATALOG_VARIABLES_FOLDER
  value: /etc/sluice-catalog-variables
{{- end }}
{{- end -}}

{{/* Renders where the key for users is from: `own` (deliveryLog.existingSecret), `made` (by the Job), or nothing. */}}
{{- define "sluice.userKey" -}}
{{- with .Values.deliveryLog -}}
{{- if and .existingSecret .userKeyKey -}}own{{- else if .userKey.create -}}made{{- end -}}
{{- end -}}
{{- end -}}

{{/* Renders the name of the Secret that the Job makes. It has the key under the name user-key. */}}
{{- define "sluice.userKeySecret" -}}
{{ include "sluice.fullname" . }}-user-key
{{- end -}}

{{/* Renders the variable for roles that hash users for the delivery log. */}}
{{- define "sluice.userKeyEnv" -}}
{{- $from := include "sluice.userKey" . -}}
{{- if eq $from "own" }}
- name: SLUICE_ATTEMPTS_USER_KEY_FILE
  value: /etc/sluice-log/{{ .Values.deliveryLog.userKeyKey }}
{{- else if eq $from "made" }}
- name: SLUICE_ATTEMPTS_USER_KEY_FILE
  value: /etc/sluice-user-key/user-key
{{- end }}
{{- end -}}

{{/* Renders the mount of the key that the Job has made, or nothing. */}}
{{- define "sluice.userKeyMount" -}}
{{- if eq (include "sluice.userKey" .) "made" }}
- name: user-key
  mountPath: /etc/sluice-user-key
  readOnly: true
{{- end }}
{{- end -}}

{{/* Renders the volume of the key that the Job has made, or nothing. A pod waits until the Secret is there. */}}
{{- define "sluice.userKeyVolume" -}}
{{- if eq (include "sluice.userKey" .) "made" }}
- name: user-key
  secret:
    secretName: {{ include "sluice.userKeySecret" . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* Renders the variables for roles that write the delivery log to ClickHouse, or query it there. */}}
{{- define "sluice.clickhouseEnv" -}}
{{- with .Values.deliveryLog.clickhouse }}
{{- if .url }}
- name: SLUICE_CLICKHOUSE_URL
  value: {{ .url | quote }}
- name: SLUICE_CLICKHOUSE_USER
  value: {{ .user | quote }}
- name: SLUICE_CLICKHOUSE_DATABASE
  value: {{ .database | quote }}
{{- if .existingSecret }}
- name: SLUICE_CLICKHOUSE_PASSWORD_FILE
  value: /etc/sluice-clickhouse/{{ .passwordKey }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "sluice.clickhouseMount" -}}
- name: clickhouse-login
  mountPath: /etc/sluice-clickhouse
  readOnly: true
{{- end -}}

{{- define "sluice.clickhouseVolume" -}}
- name: clickhouse-login
  secret:
    secretName: {{ .Values.deliveryLog.clickhouse.existingSecret }}
    defaultMode: 0440
    items:
      - { key: {{ .Values.deliveryLog.clickhouse.passwordKey }}, path: {{ .Values.deliveryLog.clickhouse.passwordKey }} }
{{- end -}}

{{/* Renders `true` if ClickHouse keeps the delivery log and needs a password, and nothing otherwise. */}}
{{- define "sluice.hasClickhouseLogin" -}}
{{- with .Values.deliveryLog.clickhouse }}{{ if and .url .existingSecret }}true{{ end }}{{ end -}}
{{- end -}}

{{/* Renders the variable for the index of the delivery log and for its clients. */}}
{{- define "sluice.indexTokenEnv" -}}
- name: SLUICE_INDEX_TOKEN_FILE
  value: /etc/sluice-log/{{ .Values.deliveryLog.tokenKey }}
{{- end -}}

{{/* Renders the variables of pods that decode framed values: workers, the admin API (replays of events), and the delivery log (`sluice log find`). */}}
{{- define "sluice.registryEnv" -}}
{{- with .Values.registry }}
{{- if .url }}
- name: SLUICE_REGISTRY_URL
  value: {{ .url }}
{{- if .existingSecret }}
- name: SLUICE_REGISTRY_USERNAME
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .usernameKey }}
- name: SLUICE_REGISTRY_PASSWORD_FILE
  value: /etc/sluice-registry/{{ .passwordKey }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Renders the variable of pods that send requests to endpoints: workers, and the admin API (tests of destinations). */}}
{{- define "sluice.proxyEnv" -}}
{{- with .Values.proxy }}
{{- if .existingSecret }}
- name: SLUICE_DELIVERY_PROXY
  valueFrom:
    secretKeyRef:
      name: {{ .existingSecret }}
      key: {{ .urlKey }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "sluice.registryMount" -}}
{{- if .Values.registry.existingSecret }}
- name: registry-login
  mountPath: /etc/sluice-registry
  readOnly: true
{{- end }}
{{- end -}}

{{- define "sluice.registryVolume" -}}
{{- with .Values.registry.existingSecret }}
- name: registry-login
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "sluice.logSecretMount" -}}
- name: delivery-log
  mountPath: /etc/sluice-log
  readOnly: true
{{- end -}}

{{/* Renders the volume with those keys of the delivery log's Secret that a pod needs: (dict "log" .Values.deliveryLog "keys" (list …)) */}}
{{- define "sluice.logSecretVolume" -}}
- name: delivery-log
  secret:
    secretName: {{ required "deliveryLog.existingSecret is empty: name an existing Secret with the token of the index" .log.existingSecret }}
    defaultMode: 0440
    items:
      {{- range .keys }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- end -}}

{{/* Renders the volume mounts of every container, including that of the Job. */}}
{{- define "sluice.basicMounts" -}}
- name: tmp
  mountPath: /tmp
{{- if .Values.trustedCertificates.existingConfigMap }}
- name: certificates
  mountPath: /etc/ssl/sluice
  readOnly: true
{{- end }}
{{- if .Values.kafka.tls.existingSecret }}
- name: kafka-tls
  mountPath: /etc/sluice-kafka/tls
  readOnly: true
{{- end }}
{{- if .Values.kafka.tls.caSecret }}
- name: kafka-ca
  mountPath: /etc/sluice-kafka/ca
  readOnly: true
{{- end }}
{{- if include "sluice.hasLogin" . }}
- name: kafka-login
  mountPath: /etc/sluice-kafka/login
  readOnly: true
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Renders the extra volume mounts of one role: (dict "of" .Values.worker) */}}
{{- define "sluice.ownMounts" -}}
{{- with .of.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.ownVolumes" -}}
{{- with .of.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.initContainers" -}}
{{- with .of.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Renders the containers beside the role's own, which stays the first one. */}}
{{- define "sluice.ownContainers" -}}
{{- with .of.extraContainers }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.basicVolumes" -}}
- name: tmp
  emptyDir: {}
{{- with .Values.trustedCertificates.existingConfigMap }}
- name: certificates
  configMap:
    name: {{ . }}
{{- end }}
{{- with .Values.kafka.tls }}
{{- if .existingSecret }}
- name: kafka-tls
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    {{- include "sluice.items" (list (empty .caSecret | ternary .caKey "") .certKey .keyKey) | nindent 4 }}
{{- end }}
{{- if .caSecret }}
- name: kafka-ca
  secret:
    secretName: {{ .caSecret }}
    defaultMode: 0440
    {{- include "sluice.items" (list .caKey) | nindent 4 }}
{{- end }}
{{- end }}
{{- if include "sluice.hasLogin" . }}
- name: kafka-login
  secret:
    secretName: {{ .Values.kafka.sasl.existingSecret }}
    defaultMode: 0440
    {{- include "sluice.items" (list (eq .Values.kafka.sasl.mechanism "oauthbearer" | ternary .Values.kafka.sasl.clientSecretKey .Values.kafka.sasl.passwordKey)) | nindent 4 }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sluice.volumeMounts" -}}
{{ include "sluice.basicMounts" . }}
{{- if .Values.catalog.keysSecret }}
- name: catalog-keys
  mountPath: /etc/sluice-catalog-keys
  readOnly: true
{{- else }}
- name: catalog
  mountPath: /etc/sluice
  readOnly: true
{{- end }}
{{- if .Values.catalog.variablesSecret }}
- name: catalog-variables
  mountPath: /etc/sluice-catalog-variables
  readOnly: true
{{- end }}
{{- end -}}

{{- define "sluice.volumes" -}}
{{ include "sluice.basicVolumes" . }}
{{- if .Values.catalog.keysSecret }}
- name: catalog-keys
  secret:
    secretName: {{ .Values.catalog.keysSecret }}
    defaultMode: 0440
{{- else }}
- name: catalog
{{- if .Values.catalog.volume }}
  {{- toYaml .Values.catalog.volume | nindent 2 }}
{{- else }}
  configMap:
    name: {{ .Values.catalog.existingConfigMap | default (printf "%s-catalog" (include "sluice.fullname" .)) }}
{{- end }}
{{- end }}
{{- with .Values.catalog.variablesSecret }}
- name: catalog-variables
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "sluice.probes" -}}
livenessProbe:
  httpGet:
    path: /livez
    port: metrics
  periodSeconds: 10
  # The endpoint itself answers within 4 s, even if a process of the worker hangs.
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* Renders the start of the pod spec of every role except the Job, which has another service account. */}}
{{- define "sluice.pod" -}}
serviceAccountName: {{ include "sluice.serviceAccountName" . }}
{{- include "sluice.podBasics" . }}
{{- end -}}

{{/* Renders the fields of the pod spec that all pods share, including that of the Job. */}}
{{- define "sluice.podBasics" }}
automountServiceAccountToken: false
# If a Service were named sluice, Kubernetes would add variables that begin with SLUICE_, and Sluice would read them as settings.
enableServiceLinks: false
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Renders where the pods of a component may run: (dict "root" $ "component" "worker" "values" .Values.worker) */}}
{{- define "sluice.placement" -}}
topologySpreadConstraints:
{{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "sluice.selector" $.root | nindent 8 }}
        app.kubernetes.io/component: {{ $.component }}
{{- end }}
{{- end }}
{{ include "sluice.nodes" .values }}
{{- end -}}

{{/* Renders on which nodes pods may run. */}}
{{- define "sluice.nodes" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Renders the port of a URL. */}}
{{- define "sluice.portOf" -}}
{{- $url := urlParse . -}}
{{- regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (eq $url.scheme "https" | ternary "443" "80") -}}
{{- end -}}

{{/*
Lists the servers other than Kafka that pods connect to: the key of `networkPolicy` that is about the server (`key`), its name (`what`), the
components of this release that connect to it (`of`), and the ports of its URLs in the values (`ports`).
*/}}
{{- define "sluice.servers" -}}
{{- $searching := list -}}
{{- if .Values.deliveryLog.index.enabled }}{{- $searching = append $searching "log" }}{{- end }}
{{- if .Values.admin.enabled }}{{- $searching = append $searching "admin" }}{{- end }}
{{- $all := list "worker" -}}
{{- if .Values.gateway.enabled }}{{- $all = append $all "gateway" }}{{- end }}
{{- $all = concat $all $searching -}}
{{- if .Values.topics.apply }}{{- $all = append $all "topics" }}{{- end }}
{{- $settings := .Values.settings | default dict -}}
{{- if .Values.registry.url }}
- { key: registry, what: the schema registry, of: {{ toJson (concat (list "worker") $searching) }}, ports: [{{ include "sluice.portOf" .Values.registry.url }}] }
{{- end }}
{{- if eq .Values.kafka.sasl.mechanism "aws-iam" }}
- { key: token, what: the token service of AWS (STS), of: {{ toJson $all }}, ports: [443] }
{{- else if index $settings "SLUICE_KAFKA_OAUTH_TOKEN_URL" }}
- { key: token, what: the token endpoint for Kafka, of: {{ toJson $all }}, ports: [{{ include "sluice.portOf" (index $settings "SLUICE_KAFKA_OAUTH_TOKEN_URL") }}] }
{{- end }}
{{- $collectors := list }}
{{- range .Values.extraEnv }}
{{- if and (has .name (list "OTEL_EXPORTER_OTLP_ENDPOINT" "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) (get . "value") }}
{{- $collectors = append $collectors (include "sluice.portOf" .value | int) }}
{{- end }}
{{- end }}
{{- with $collectors }}
- { key: otlp, what: the collector of traces, of: {{ toJson $all }}, ports: {{ toJson (uniq .) }} }
{{- end }}
{{- with .Values.deliveryLog.clickhouse.url }}
- { key: clickhouse, what: ClickHouse, of: {{ toJson $searching }}, ports: [{{ include "sluice.portOf" . }}] }
{{- end }}
{{- end -}}

{{/* Renders the topic prefix as a regular expression in a PromQL string. */}}
{{- define "sluice.prefixPattern" -}}
{{ .Values.kafka.topicPrefix | replace "." "\\\\." }}
{{- end -}}

{{/* Renders the matchers of the worker pods' series. */}}
{{- define "sluice.ofWorkers" -}}
namespace="{{ .Release.Namespace }}",pod=~"{{ include "sluice.fullname" . }}-worker-[0-9]+"
{{- end -}}

{{/* Renders the query of the lag. While a partition moves, two pods report its lag for a moment. It counts once. */}}
{{- define "sluice.lagQuery" -}}
sum(max by (topic, partition) (sluice_consumer_lag_records{ {{- include "sluice.ofWorkers" . -}} ,topic=~"{{ include "sluice.prefixPattern" . }}(events|(g[0-9]+\\.)?replays)"}))
{{- end -}}

{{/*
Renders the query of the cores that the load needs: the cores in use, and those that are needed to work off the lag at the present cost of a
record. If records wait and none are taken, the query has no result, and the number of pods stays: more pods don't help while Kafka or the proxy
is down.
*/}}
{{- define "sluice.workQuery" -}}
{{- $cores := printf "sum(rate(process_cpu_seconds_total{%s}[2m]))" (include "sluice.ofWorkers" .) -}}
{{- $taken := printf "sum(rate(sluice_records_total{%s,topic=~\"events|replays\"}[2m]))" (include "sluice.ofWorkers" .) -}}
{{- $lag := include "sluice.lagQuery" . -}}
{{ $cores }} * (1 + {{ $lag }} / ({{ .Values.worker.autoscaling.drainSeconds }} * ({{ $taken }} > 0))) or ({{ $cores }} and {{ $lag }} == 0)
{{- end -}}

{{/* Renders the query of the requests in flight, as a number of pods that are at their limit. */}}
{{- define "sluice.requestsQuery" -}}
sum(avg_over_time(sluice_deliveries_in_flight{ {{- include "sluice.ofWorkers" . -}} }[2m])) / avg(sluice_deliveries_in_flight_limit{ {{- include "sluice.ofWorkers" . -}} })
{{- end -}}

{{/*
Renders the query of how late the oldest due retry is, in seconds. Workers deliver no retry while Kafka takes no writes or the proxy is down, and
more pods don't help then. So such workers don't count. If no other worker has retries, the query has no result, and the number of pods stays.
*/}}
{{- define "sluice.overdueQuery" -}}
{{- $of := include "sluice.ofWorkers" . -}}
{{- $due := printf "sluice_oldest_due_timestamp_seconds{%s}" $of -}}
{{- $stopped := printf "(sluice_proxy_down{%s} == 1 or sluice_produce_stalled{%s} == 1)" $of $of -}}
clamp_min(max(time() - {{ $due }} unless on (pod) {{ $stopped }}), 0) or (vector(0) unless on () group({{ $due }}))
{{- end -}}

{{/* Lists the triggers that ask for worker pods: each trigger's query, and the part of its result that one pod takes. */}}
{{- define "sluice.triggers" -}}
{{- $share := divf .Values.worker.autoscaling.targetUtilization 100 -}}
- name: work
  series: sluice_scaling_work_cores
  query: {{ include "sluice.workQuery" . | quote }}
  perPod: {{ mulf $share (include "sluice.processes" . | int) | quote }}
- name: requests
  series: sluice_scaling_requests_pods
  query: {{ include "sluice.requestsQuery" . | quote }}
  perPod: {{ $share | quote }}
- name: overdue
  series: sluice_scaling_overdue_seconds
  query: {{ include "sluice.overdueQuery" . | quote }}
  perPod: {{ .Values.worker.autoscaling.overdueSecondsPerPod | quote }}
{{- end -}}

{{/* Renders how fast the number of worker pods may change. */}}
{{- define "sluice.scalingBehavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ .scaleUp.stabilizationWindowSeconds }}
  selectPolicy: Max
  policies:
    - type: Percent
      value: {{ .scaleUp.percentPerMinute }}
      periodSeconds: 60
    - type: Pods
      value: 2
      periodSeconds: 60
scaleDown:
  stabilizationWindowSeconds: {{ .scaleDown.stabilizationWindowSeconds }}
  policies:
    - type: Pods
      value: 1
      periodSeconds: {{ .scaleDown.secondsPerPod }}
{{- end -}}
