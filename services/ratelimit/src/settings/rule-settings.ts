import { bool, oneOf, text } from '@tollgate/kit/settings';

const group = 'Rules';

/** Where rules come from. */
export const ruleSettings = {
  configType: oneOf(['FILE', 'GRPC_XDS_SOTW'], {
    env: 'CONFIG_TYPE',
    group,
    default: 'FILE',
    doc: 'Where rules come from: files (RUNTIME_*), or a management server (CONFIG_GRPC_XDS_*).',
  }),
  forceStartWithoutInitialConfig: bool({
    env: 'FORCE_START_WITHOUT_INITIAL_CONFIG',
    group,
    default: false,
    doc: 'Open the servers before a first configuration has arrived. Without, a management server is waited for until it has sent one that is accepted.',
  }),
  runtimeRoot: text({
    env: 'RUNTIME_ROOT',
    group,
    default: '/srv/runtime_data/current',
    doc: 'Directory that holds the rule files, or a symbolic link to it.',
  }),
  runtimeSubdirectory: text({
    env: 'RUNTIME_SUBDIRECTORY',
    group,
    default: '',
    doc: 'Directory below RUNTIME_ROOT that holds RUNTIME_APPDIRECTORY; empty for RUNTIME_ROOT itself.',
  }),
  runtimeAppdirectory: text({
    env: 'RUNTIME_APPDIRECTORY',
    group,
    default: 'config',
    doc: 'Directory below that with the rule files, whatever their extension.',
  }),
  runtimeIgnoreDotFiles: bool({
    env: 'RUNTIME_IGNOREDOTFILES',
    group,
    default: false,
    doc: 'Leave out files and directories whose names begin with a dot, such as those of an editor. Those of a Kubernetes volume (`..data`) always are.',
  }),
  runtimeWatchRoot: bool({
    env: 'RUNTIME_WATCH_ROOT',
    group,
    default: true,
    doc: 'true: reload when the symbolic link RUNTIME_ROOT is swapped. false: reload when a file changes in place.',
  }),
  mergeDomainConfig: bool({
    env: 'MERGE_DOMAIN_CONFIG',
    group,
    default: false,
    doc: 'Let several files, or resources of a management server, define the same domain.',
  }),
  healthyWithAtLeastOneConfigLoaded: bool({
    env: 'HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED',
    group,
    default: false,
    doc: 'Be unhealthy while no domain is configured.',
  }),
};
