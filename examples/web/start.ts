// Starts the web application behind Envoy on this machine, with the auth server, the rate limit
// service and the xDS server that follows policy.yaml. Ctrl-C stops everything.
import { startExample } from '../support/start.ts';

await startExample({
  folder: import.meta.dirname,
  application: 'the application',
  settings: () => ({ SVC_PAGES_NAME: 'Notes' }),
  describe: ({ ports }) => `Open http://localhost:${ports.envoy}/ in a browser, and create an account.`,
});
