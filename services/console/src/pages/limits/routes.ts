import type { Area } from '../../http/routes.ts';
import { endOverride, resetCounter, setOverride } from './actions.ts';
import { viewCounter, viewReset } from './counter.ts';
import { viewKeys, viewRefusals } from './keys.ts';
import { viewOverrides } from './overrides.ts';
import { viewPromotion } from './promote.ts';
import { viewDomains, viewRules } from './rules.ts';
import { viewTrial } from './trial.ts';

/** Limits, and how full they are. */
export const limitsArea: Area = {
  name: 'limits',
  title: 'Limits',
  path: '/limits',
  group: 'Traffic',
  permission: 'limits',
  pages: [
    { path: '/limits', view: viewKeys },
    { path: '/limits/domains', view: viewDomains },
    { path: '/limits/rules', view: viewRules },
    { path: '/limits/refusals', view: viewRefusals },
    { path: '/limits/overrides', view: viewOverrides },
    { path: '/limits/trial', view: viewTrial },
    { path: '/limits/trial/promote', view: viewPromotion },
    { path: '/limits/counter', view: viewCounter },
    { path: '/limits/reset', permission: 'limits/change', view: viewReset },
  ],
  actions: [
    { path: '/limits/reset', permission: 'limits/change', submit: resetCounter },
    { path: '/limits/override', permission: 'limits/change', submit: setOverride },
    { path: '/limits/override/end', permission: 'limits/change', submit: endOverride },
  ],
};
