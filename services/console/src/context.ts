import type { Logger } from '@tollgate/kit/logger';
import type { StartReport } from '@tollgate/kit/start-report';
import type { Settings } from './config/settings.ts';
import type { Live } from './live/live.ts';
import type { ConsoleMetrics } from './metrics.ts';
import type { Permission } from './scopes.ts';
import type { Outages } from './services/outages.ts';
import type { SignInFlow } from './sign-in/flow.ts';
import type { Sessions } from './sign-in/sessions.ts';
import type { Assets } from './ui/assets.ts';
import type { NavigationEntry } from './ui/layout.ts';

/** An entry of the menu, shown to those who may see the page. */
interface MenuEntry extends NavigationEntry {
  readonly permission: Permission;
}

/** Parts that most of the service uses. */
export interface Context {
  readonly settings: Settings;
  readonly logger: Logger;
  readonly metrics: ConsoleMetrics;
  /** Unix time in milliseconds. */
  readonly nowMs: () => number;
  readonly sessions: Sessions;
  readonly signIn: SignInFlow;
  readonly outages: Outages;
  /** Samples of the last hour. */
  readonly live: Live;
  readonly assets: Assets;
  /** The settings of the console itself. */
  readonly report: Pick<StartReport, 'get'>;
  readonly menu: readonly MenuEntry[];
}
