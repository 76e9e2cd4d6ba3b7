/** Whether this replica is the one that writes. */
export interface Leadership {
  /** False from the moment on at which another replica may take over. */
  isLeader(): boolean;
  /** Calls the listener after each change, until the returned function is called. */
  onChange(listener: (leader: boolean) => void): () => void;
}
