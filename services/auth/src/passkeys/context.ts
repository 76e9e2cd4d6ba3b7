import type { MessagesContext } from '../messages/context.ts';
import type { PasskeyStore } from './store.ts';

export type PasskeysContext = MessagesContext & { readonly store: { readonly passkeys: PasskeyStore } };
