/**
 * What only Node can do: client certificates, proxies, files, diagnostics channels.
 *
 * @module
 */
export { diagnosticsChannels, diagnosticsHooks } from './node/diagnostics-hooks.ts';
export { type FileTokenStoreOptions, fileTokenStore } from './node/file-token-store.ts';
export { nodeTransport } from './node/node-transport.ts';
export { type EnvironmentProxy, proxyFromEnvironment } from './node/proxy-settings.ts';
export type { NodeTransport, NodeTransportOptions, Pem } from './node/transport-options.ts';
