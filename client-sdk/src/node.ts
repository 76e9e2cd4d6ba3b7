/**
 * Features of Node only: client certificates, proxies, files, diagnostics channels.
 *
 * @module
 */
export { diagnosticsChannels, diagnosticsHooks } from './node/diagnostics-hooks.ts';
export { type FileTokenStoreOptions, fileTokenStore } from './node/file-token-store.ts';
export { type EnvironmentProxy, proxyFromEnvironment } from './node/proxy.ts';
export type { NodeTransport, NodeTransportOptions, Pem } from './node/transport.ts';
export { nodeTransport } from './node/transport.ts';
