PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE agent_specs (
  agent_id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  config_json TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('config', 'api')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO agent_specs VALUES('main','main','{"agent_id":"main","name":"main","description":"answers people","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{"allow":["*","group:memory","group:cron","group:agents","group:team","group:fs","group:sessions"]},"skills":{}},"context_policy":{"memory":true,"scope":"shared","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"allow_agents":["*"],"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60},"delegation":{"allow_agents":["expert"],"max_concurrent":4,"max_depth":2}}','config',1795128663316,1795128663316);
INSERT INTO agent_specs VALUES('ops','ops','{"agent_id":"ops","name":"ops","description":"looks after the servers","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{"approvals":{"write_file":"always"}},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"dir":".","overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}','config',1795128663316,1795128663316);
INSERT INTO agent_specs VALUES('expert','expert','{"agent_id":"expert","name":"expert","description":"knows","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}','config',1795128663316,1795128663316);
INSERT INTO agent_specs VALUES('made','Made','{"agent_id":"made","name":"Made","description":"created at run time","defaults":{"model":"lab/demo","fallbacks":[],"temperature":0.5,"system_prompt":"You are careful."},"policy":{"tools":{"deny":["shell"]},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{"emoji":"🦀"},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}','api',1795128663345,1795128663345);
CREATE TABLE sessions (
  session_key TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  active_agent_id TEXT NOT NULL,
  provider_override TEXT,
  model_override TEXT,
  deliver_policy INTEGER NOT NULL DEFAULT 1,
  send_policy INTEGER NOT NULL DEFAULT 1,
  owner_session_key TEXT,
  channel TEXT,
  account TEXT,
  peer TEXT,
  thread TEXT,
  lane TEXT NOT NULL,
  spawn_depth INTEGER NOT NULL DEFAULT 0,
  delegation_depth INTEGER NOT NULL DEFAULT 0,
  team TEXT,
  team_role TEXT,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
  title TEXT,
  next_ticket INTEGER NOT NULL DEFAULT 1,
  summary TEXT,
  compacted_ticket INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, focus_session_key TEXT, ttl_ms INTEGER, lent_json TEXT, thinking TEXT, untold_from INTEGER) STRICT;
INSERT INTO sessions VALUES('agent:main:main','01m7v037b8mcgzxjdrdvahf0qt','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:main',NULL,'main',0,0,NULL,NULL,'active','Plan the day. DO [{"call": ["todo", {"items": [{"text": "pai',19,NULL,0,1795128663400,1795128663618,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:folded','01m7v03av6ev81fvrrbntykjnh','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:folded',NULL,'main',0,0,NULL,NULL,'active','Fact number 0: the harbour has 0 boats.',17,NULL,14,1795128663623,1795128667030,NULL,43200000,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty','01m7v03ashrhsy9dfspv44nytz','made','made','lab','demo',1,1,NULL,NULL,NULL,NULL,NULL,'main',0,0,NULL,NULL,'active','A titled session',3,NULL,0,1795128666929,1795128666981,'agent:main:folded',NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:family','01m7v03awrvexcqn1jrjceqq6h','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:family',NULL,'main',0,0,NULL,NULL,'active','Begin one. DO [{"call": ["sessions_spawn", {"task": "DO [{\"',13,NULL,0,1795128667032,1795128667193,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:subagent:a865d4218234ea07dee68c5200cb1199','01m7v03ay8s41a05ts6x0gzknn','main','main',NULL,NULL,0,0,'agent:main:family','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','first child',3,NULL,0,1795128667080,1795128667131,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:chain',NULL,'main',0,0,NULL,NULL,'active','Begin a chain. DO [{"call": ["sessions_spawn", {"task": "DO ',10,NULL,0,1795128667086,1795128667234,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','01m7v03aykddsbyyexab5tb59x','main','main',NULL,NULL,0,0,'agent:main:chain','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','chained',3,NULL,0,1795128667091,1795128667139,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','01m7v03aywhnnp1vxhh6x03wh7','expert','expert',NULL,NULL,0,0,'agent:main:family','internal','','',NULL,'subagent',1,1,NULL,NULL,'active','DO [{"say": "The expert answer."}]',3,NULL,0,1795128667100,1795128667144,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','01m7v03b1kzr615gztfc4wqbpb','main','main',NULL,NULL,0,0,'agent:main:chain','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','second',3,NULL,0,1795128667187,1795128667234,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:fish',NULL,'main',0,0,NULL,NULL,'active','Go fishing. DO [{"call": ["sessions_spawn", {"task": "DO [{\',7,NULL,0,1795128667352,1795128667459,NULL,NULL,NULL,NULL,5);
INSERT INTO sessions VALUES('agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','01m7v03b6ymahjgtqgw93xnk93','main','main',NULL,NULL,0,0,'agent:main:fish','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','fishing',3,NULL,0,1795128667358,1795128667410,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6p','ops','ops',NULL,NULL,1,1,NULL,'web','default','agent:ops:decided',NULL,'main',0,0,NULL,NULL,'active','Write. DO [{"call": ["write_file", {"path": "a.txt", "conten',5,NULL,0,1795128667363,1795128667575,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:ops:waiting','01m7v03bdpn063ckft7zanythe','ops','ops',NULL,NULL,1,1,NULL,'web','default','agent:ops:waiting',NULL,'main',0,0,NULL,NULL,'active','Write b. DO [{"call": ["write_file", {"path": "b.txt", "cont',3,NULL,0,1795128667574,1795128667579,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkd','main','main',NULL,NULL,1,1,NULL,'webhook','desk','cust',NULL,'main',0,0,NULL,NULL,'active','first question',3,NULL,0,1795128667580,1795128667626,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:webhook:desk:dm:refused','01m7v03ceqpvw66eayeh3eym72','main','main',NULL,NULL,1,1,NULL,'webhook','desk','refused',NULL,'main',0,0,NULL,NULL,'active','a question whose reply is refused',3,NULL,0,1795128668631,1795128668636,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:webhook:bell:dm:cust','01m7v03cezxfqyjds5e495vd8z','main','main',NULL,NULL,1,1,NULL,'webhook','bell','cust',NULL,'main',0,0,NULL,NULL,'active','a question whose reply is cut',3,NULL,0,1795128668639,1795128668686,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:lead','01m7v03enpsg5ka5bpy55y895f','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:lead',NULL,'main',0,0,NULL,'lead','active','I lead a team.',14,NULL,0,1795128670902,1795128676100,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk','ops','ops',NULL,NULL,0,0,'agent:main:lead','internal','','',NULL,'teammate',1,0,NULL,'member','active','ann',11,NULL,0,1795128670937,1795128674044,NULL,NULL,'{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03eq2dkhkrrgas856nmm2','expert','expert',NULL,NULL,0,0,'agent:main:lead','internal','','',NULL,'teammate',1,0,NULL,'member','active','bob',5,NULL,0,1795128670946,1795128676050,NULL,NULL,'{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,3);
INSERT INTO sessions VALUES('agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1','01m7v03eqdct1ghf9f31z2q892','made','made',NULL,NULL,0,0,'agent:main:lead','internal','','',NULL,'teammate',1,0,NULL,'member','active','carl',2,NULL,0,1795128670957,1795128682049,NULL,NULL,'{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a','main','main',NULL,NULL,1,1,NULL,'telegram','main','8',NULL,'main',0,0,NULL,NULL,'active','hello from a paired person',7,NULL,0,1795128671092,1795128693185,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:second','01m7v03sj3w1cxqmax77kw4f31','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:second',NULL,'main',0,0,NULL,'lead','active','Make a team. DO [{"call": ["TeamCreate", {"team_name": "dock',17,NULL,0,1795128682051,1795128685116,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjmkdfjhqmye56d69z6','expert','expert',NULL,NULL,0,0,'agent:main:second','internal','','',NULL,'teammate',1,0,NULL,'member','active','dora',5,NULL,0,1795128682068,1795128685151,NULL,NULL,'{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:main:waits','01m7v03whznsg81fgjq3693nmb','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:waits',NULL,'main',0,0,NULL,NULL,'active','Delegate and wait. DO [{"call": ["delegate_to_agent", {"agen',3,NULL,0,1795128685119,1795128685126,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:parent','01m7v03wj2zzsyr9ye1kxzcn0p','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:parent',NULL,'main',0,0,NULL,NULL,'active','Begin one that runs. DO [{"call": ["sessions_spawn", {"task"',5,NULL,0,1795128685122,1795128685180,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62','01m7v03wj6xjm7tw64wr2gcbwp','expert','expert',NULL,NULL,0,0,'agent:main:waits','internal','','',NULL,'subagent',1,1,NULL,NULL,'active','DO [{"hang": true, "partial": "So far "}]',2,NULL,0,1795128685126,1795128685126,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:subagent:1586df04aabcb1b0e5844af08a707af4','01m7v03wknvp6m92a671qtc5kg','main','main',NULL,NULL,0,0,'agent:main:parent','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','still running',2,NULL,0,1795128685173,1795128685173,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
INSERT INTO sessions VALUES('agent:main:club','01m7v03wkzxdybjy7wcx8abdm7','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:club',NULL,'main',0,0,NULL,NULL,'active','What do all of you think? DO [{"hang": true}]',2,NULL,0,1795128685183,1795128685183,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj5','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:cut',NULL,'main',0,0,NULL,NULL,'active','Do two steps. DO [{"call": ["todo", {"items": [{"text": "ste',4,NULL,0,1795128685187,1795128685194,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:tool','01m7v03wm5r3nv1nzxbjzq8s27','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:tool',NULL,'main',0,0,NULL,NULL,'active','Sleep in a shell. DO [{"call": ["shell", {"command": "sleep ',3,NULL,0,1795128685189,1795128685240,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:steered','01m7v03wm7vbz6zb61xrwq6npp','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:steered',NULL,'main',0,0,NULL,NULL,'active','A long task. DO [{"slow": 3}, {"call": ["todo", {"items": [{',6,NULL,0,1795128685191,1795128688202,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:held','01m7v041gn5bhdsvh94dv1y9mp','main','main',NULL,NULL,1,1,NULL,'web','default','agent:main:held',NULL,'main',0,0,NULL,NULL,'active','First of three. DO [{"hang": true}]',4,NULL,0,1795128690197,1795128692206,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8p','main','main',NULL,NULL,1,1,NULL,'webhook','desk','down',NULL,'main',0,0,NULL,NULL,'active','a question whose reply waits',3,NULL,0,1795128692213,1795128692220,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:telegram:dm:42','01m7v044c60d7zdy7jtgb6m31a','main','main',NULL,NULL,1,1,NULL,'telegram','main','42',NULL,'main',0,0,NULL,NULL,'active','DO [{"hang": true, "partial": "A long thought that is not ye',2,NULL,0,1795128693126,1795128693126,NULL,NULL,NULL,NULL,NULL);
INSERT INTO sessions VALUES('agent:main:subagent:608cd6776b642e3598459cd7697cbb26','01m7v044dx93n7x3njxmdnfpkg','main','main',NULL,NULL,0,0,'agent:main:telegram:dm:8','internal','','',NULL,'subagent',1,0,NULL,NULL,'active','of a person',2,NULL,0,1795128693181,1795128693181,NULL,NULL,'{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}',NULL,NULL);
CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  ticket INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  text TEXT NOT NULL,
  parts_json TEXT,
  origin TEXT NOT NULL,
  channel TEXT NOT NULL,
  deliver INTEGER NOT NULL,
  address_json TEXT,
  meta_json TEXT,
  idempotency_key TEXT,
  turn_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO messages VALUES('01m7v037b8jm647q4hzw5y6hg3','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',1,'user','Plan the day. DO [{"call": ["todo", {"items": [{"text": "paint the boat", "state": "doing"}, {"text": "buy rope"}]}]}, {"call": ["memory_store", {"content": "The boat is called Wanda.", "key": "wanda"}]}, {"say": "The list is stored."}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:main"}',NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663400);
INSERT INTO messages VALUES('01m7v037cv7yrjxjp2mvfw2e1g','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_29d990ae7c9c_0","name":"todo","arguments":{"items":[{"text":"paint the boat","state":"doing"},{"text":"buy rope"}]}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663451);
INSERT INTO messages VALUES('01m7v037cwt0mfk82qn7v4repf','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',3,'tool',replace('1. [~] paint the boat\n2. [ ] buy rope\n0 of 2 done','\n',char(10)),'[{"type":"tool_result","call_id":"call_29d990ae7c9c_0","name":"todo","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663452);
INSERT INTO messages VALUES('01m7v037cyzdtxn93fzsdz9bbg','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',4,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_6db1c6b77586_0","name":"memory_store","arguments":{"content":"The boat is called Wanda.","key":"wanda"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663454);
INSERT INTO messages VALUES('01m7v037czbj9sbvyr36j8ytsp','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',5,'tool','Remembered: {"id":"01m7v037cyzdtxn93fzsdz9bbh","key":"wanda","scope":"shared"}','[{"type":"tool_result","call_id":"call_6db1c6b77586_0","name":"memory_store","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663455);
INSERT INTO messages VALUES('01m7v037d0gfv67pgk6byqcs1j','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',6,'assistant','The list is stored.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037b8mcgzxjdrdvahf0qs',1795128663456);
INSERT INTO messages VALUES('01m7v037d2xfq995mv8mt1nxce','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',7,'user','And now a second question.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:main"}',NULL,NULL,'01m7v037d2xfq995mv8mt1nxcf',1795128663458);
INSERT INTO messages VALUES('01m7v037d61nvftr1yxn6hnwp1','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',8,'assistant','Noted: And now a second question.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037d2xfq995mv8mt1nxcf',1795128663462);
INSERT INTO messages VALUES('01m7v037d8qz6zmkqpy7d8q3wz','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',9,'user','Look at this. DO [{"say": "I see a pixel."}]','[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"},{"type":"attachment","name":"note.md","media_type":"text/markdown","text":"A note."}]','user','web',1,'{"channel":"web","account":"default","peer":"agent:main:main"}',NULL,NULL,'01m7v037d8r3rg3w0k5s3xgxyr',1795128663464);
INSERT INTO messages VALUES('01m7v037eq43gtb2nw3843bm8s','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',10,'assistant','I see a pixel.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037d8r3rg3w0k5s3xgxyr',1795128663511);
INSERT INTO messages VALUES('01m7v037eskycgwaa85casf87k','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',11,'user','Make a cron job. DO [{"call": ["cron_add", {"id": "tide", "schedule": "every 6h", "message": "Look at the tide.", "catch_up": true}]}, {"say": "ok"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:main"}',NULL,NULL,'01m7v037esyfxq093ecv9zj4r5',1795128663513);
INSERT INTO messages VALUES('01m7v037ga1q9vjxhrs6t3mxtb','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',12,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_ed8c47ed90c4_0","name":"cron_add","arguments":{"id":"tide","schedule":"every 6h","message":"Look at the tide.","catch_up":true}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037esyfxq093ecv9zj4r5',1795128663562);
INSERT INTO messages VALUES('01m7v037gc5nrbfzf3n08n5yms','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',13,'tool','{"id":"tide","next":"2026-11-20T00:00:00.000Z","session_key":"cron:tide"}','[{"type":"tool_result","call_id":"call_ed8c47ed90c4_0","name":"cron_add","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037esyfxq093ecv9zj4r5',1795128663564);
INSERT INTO messages VALUES('01m7v037gf8bsc4hq249b01qsv','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',14,'assistant','ok',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037esyfxq093ecv9zj4r5',1795128663566);
INSERT INTO messages VALUES('01m7v037ggc75s6ce1vjj07dv0','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',15,'user','Read a file. DO [{"call": ["read_file", {"path": "missing.txt"}]}, {"say": "There is no such file."}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:main"}',NULL,NULL,'01m7v037ggc75s6ce1vjj07dv1',1795128663568);
INSERT INTO messages VALUES('01m7v037hzvqtgrs61v83phe8e','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',16,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_e131b23a4eab_0","name":"read_file","arguments":{"path":"missing.txt"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v037ggc75s6ce1vjj07dv1',1795128663615);
INSERT INTO messages VALUES('01m7v037j00z1pztv7recmw7hm','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',17,'tool','''missing.txt'': there is no such file or folder','[{"type":"tool_result","call_id":"call_e131b23a4eab_0","name":"read_file","is_error":true}]','agent:main','internal',0,NULL,'{"sandbox":{"line":"sandbox off · openat2: beneath, no_symlinks, no_magiclinks","facts":{"mode":"off","isolation":"in_process","files":{"resolved":"openat2: beneath, no_symlinks, no_magiclinks"}}}}',NULL,'01m7v037ggc75s6ce1vjj07dv1',1795128663616);
INSERT INTO messages VALUES('01m7v037j2xh3yf17sz6wrm80n','agent:main:main','01m7v037b8mcgzxjdrdvahf0qt',18,'assistant','There is no such file.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037ggc75s6ce1vjj07dv1',1795128663618);
INSERT INTO messages VALUES('01m7v037j7zycsknrwxz7h2ts2','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',1,'user','Fact number 0: the harbour has 0 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037j7zycsknrwxz7h2ts3',1795128663623);
INSERT INTO messages VALUES('01m7v037kpxfc2fwvznw5qfga6','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',2,'assistant','Noted: Fact number 0: the harbour has 0 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037j7zycsknrwxz7h2ts3',1795128663670);
INSERT INTO messages VALUES('01m7v037kr74c3hawzb669jxsv','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',3,'user','Fact number 1: the harbour has 1 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037krwbbsr9b3memafx3e',1795128663672);
INSERT INTO messages VALUES('01m7v037n63q3v15swjawaaxd2','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',4,'assistant','Noted: Fact number 1: the harbour has 1 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037krwbbsr9b3memafx3e',1795128663718);
INSERT INTO messages VALUES('01m7v037n8zzj109hq7ehxy8fm','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',5,'user','Fact number 2: the harbour has 2 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037n8zzj109hq7ehxy8fn',1795128663720);
INSERT INTO messages VALUES('01m7v037pwqgn1t2fabnh3yvsj','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',6,'assistant','Noted: Fact number 2: the harbour has 2 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037n8zzj109hq7ehxy8fn',1795128663772);
INSERT INTO messages VALUES('01m7v037pywqjydkrqxq69dvjy','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',7,'user','Fact number 3: the harbour has 3 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037pywqjydkrqxq69dvjz',1795128663774);
INSERT INTO messages VALUES('01m7v037repht8gdyjzes6xen1','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',8,'assistant','Noted: Fact number 3: the harbour has 3 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037pywqjydkrqxq69dvjz',1795128663822);
INSERT INTO messages VALUES('01m7v037rgswpdb4vgrq5wkekq','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',9,'user','Fact number 4: the harbour has 4 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037rgt4fz4qvxcs6ptx91',1795128663824);
INSERT INTO messages VALUES('01m7v037syt12ahkvv9dw2z79k','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',10,'assistant','Noted: Fact number 4: the harbour has 4 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037rgt4fz4qvxcs6ptx91',1795128663870);
INSERT INTO messages VALUES('01m7v037t0mc2dyq0k3zkw5z6t','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',11,'user','Fact number 5: the harbour has 5 boats.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v037t0nbj97fg2bwvpdy22',1795128663872);
INSERT INTO messages VALUES('01m7v037ve71eje1kpsg3z07zn','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',12,'assistant','Noted: Fact number 5: the harbour has 5 boats.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v037t0nbj97fg2bwvpdy22',1795128663918);
INSERT INTO messages VALUES('01m7v03asb53d0ke5ptyy27wte','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',13,'user','After the fold.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v03asb53d0ke5ptyy27wtf',1795128666923);
INSERT INTO messages VALUES('01m7v03asgyf5g7ky72qwgky4e','agent:main:folded','01m7v037j7zycsknrwxz7h2ts4',14,'assistant','Noted: After the fold.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03asb53d0ke5ptyy27wtf',1795128666928);
INSERT INTO messages VALUES('01m7v03askfr4w05151wn81e74','agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty','01m7v03ashrhsy9dfspv44nytz',1,'user','hello made',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty"}',NULL,NULL,'01m7v03askfr4w05151wn81e75',1795128666931);
INSERT INTO messages VALUES('01m7v03av1p3hk02mrm2rzrpx1','agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty','01m7v03ashrhsy9dfspv44nytz',2,'assistant','Noted: hello made',NULL,'agent:made','web',1,NULL,NULL,NULL,'01m7v03askfr4w05151wn81e75',1795128666977);
INSERT INTO messages VALUES('01m7v03av7enh89t3h2fyhx6s1','agent:main:folded','01m7v03av6ev81fvrrbntykjnh',15,'user','A new conversation under the same key.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:folded"}',NULL,NULL,'01m7v03av7enh89t3h2fyhx6s2',1795128666983);
INSERT INTO messages VALUES('01m7v03awpjfedxyrhvk79pk1b','agent:main:folded','01m7v03av6ev81fvrrbntykjnh',16,'assistant','Noted: A new conversation under the same key.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03av7enh89t3h2fyhx6s2',1795128667030);
INSERT INTO messages VALUES('01m7v03awrktpr907g3yswqs5n','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',1,'user','Begin one. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"The child is done.\"}]", "label": "first child", "tags": ["a", "b"], "result_schema": {"type": "string"}}]}, {"say": "started"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:family"}',NULL,NULL,'01m7v03awrvexcqn1jrjceqq6g',1795128667032);
INSERT INTO messages VALUES('01m7v03ay697wabdnprd03geas','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_66b1ddf60abb_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"The child is done.\"}]","label":"first child","tags":["a","b"],"result_schema":{"type":"string"}}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03awrvexcqn1jrjceqq6g',1795128667078);
INSERT INTO messages VALUES('01m7v03ay8s41a05ts6x0gzknk','agent:main:subagent:a865d4218234ea07dee68c5200cb1199','01m7v03ay8s41a05ts6x0gzknn',1,'user',replace('DO [{"say": "The child is done."}]\n\nAnswer with JSON alone that fits this schema:\n{"type":"string"}','\n',char(10)),NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0','01m7v03ay8s41a05ts6x0gzknm',1795128667080);
INSERT INTO messages VALUES('01m7v03ayagg0yde8dx961nqny','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',3,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:a865d4218234ea07dee68c5200cb1199","run_id":"01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0"}','[{"type":"tool_result","call_id":"call_66b1ddf60abb_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03awrvexcqn1jrjceqq6g',1795128667082);
INSERT INTO messages VALUES('01m7v03aycy5z5ky3k9qxk7651','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',4,'assistant','started',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03awrvexcqn1jrjceqq6g',1795128667084);
INSERT INTO messages VALUES('01m7v03ayeh312ev25ce2kqdb7','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',1,'user','Begin a chain. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]", "label": "chained"}]}, {"say": "started"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:chain"}',NULL,NULL,'01m7v03ayek0hjak6hta5g58sy',1795128667086);
INSERT INTO messages VALUES('01m7v03ayh5y64xbk19estsar2','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_57da251c8964_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","label":"chained"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03ayek0hjak6hta5g58sy',1795128667089);
INSERT INTO messages VALUES('01m7v03aykddsbyyexab5tb59v','agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','01m7v03aykddsbyyexab5tb59x',1,'user','DO [{"say": "DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]"}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0','01m7v03aykddsbyyexab5tb59w',1795128667091);
INSERT INTO messages VALUES('01m7v03aymgc64tf61kk7zenvd','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',3,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f","run_id":"01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0"}','[{"type":"tool_result","call_id":"call_57da251c8964_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03ayek0hjak6hta5g58sy',1795128667092);
INSERT INTO messages VALUES('01m7v03aypz0gd8t3kepgpmvhh','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',4,'assistant','started',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03ayek0hjak6hta5g58sy',1795128667094);
INSERT INTO messages VALUES('01m7v03ayrsv9rwsfrjmhysj6a','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',5,'user','Delegate. DO [{"call": ["delegate_to_agent", {"agent_id": "expert", "task": "DO [{\"say\": \"The expert answer.\"}]", "mode": "sync"}]}, {"say": "asked"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:family"}',NULL,NULL,'01m7v03ayrsv9rwsfrjmhysj6b',1795128667096);
INSERT INTO messages VALUES('01m7v03ayvey96hwv46exesswb','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',6,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_4e2cd5822cc2_0","name":"delegate_to_agent","arguments":{"agent_id":"expert","task":"DO [{\"say\": \"The expert answer.\"}]","mode":"sync"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03ayrsv9rwsfrjmhysj6b',1795128667099);
INSERT INTO messages VALUES('01m7v03aywhnnp1vxhh6x03wh5','agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','01m7v03aywhnnp1vxhh6x03wh7',1,'user','DO [{"say": "The expert answer."}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0','01m7v03aywhnnp1vxhh6x03wh6',1795128667100);
INSERT INTO messages VALUES('01m7v03azwyb34a3fvbp7qj9jr','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',11,'user','[@agent:main#main] finish',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03awrxwmw9ms3w61k30s8","hop":1,"idempotency_key":"announce:01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:a865d4218234ea07dee68c5200cb1199","source_run_id":"01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0","task":{"label":"first child","prompt":"DO [{\"say\": \"The child is done.\"}]\n\nAnswer with JSON alone that fits this schema:\n{\"type\":\"string\"}","tags":["a","b"]},"result":{"status":"ok","summary":"The child is done.","artifacts":[],"error_code":null},"stats":{"duration_ms":52,"tokens":132,"cost_usd":0.000144},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:family"}],"asked_by":["web:default:agent:main:family"]}','announce:01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0','01m7v03azwyb34a3fvbp7qj9js',1795128667132);
INSERT INTO messages VALUES('01m7v03azwyb34a3fvbp7qj9jv','agent:main:subagent:a865d4218234ea07dee68c5200cb1199','01m7v03ay8s41a05ts6x0gzknn',2,'assistant','The child is done.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03ay8s41a05ts6x0gzknm',1795128667131);
INSERT INTO messages VALUES('01m7v03b03asskk3m8q6wdjb5e','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',5,'user','[@agent:main#main] finish',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03ayeyc3hzcvbpdarf5c0","hop":1,"idempotency_key":"announce:01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f","source_run_id":"01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0","task":{"label":"chained","prompt":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","tags":[]},"result":{"status":"ok","summary":"DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]","artifacts":[],"error_code":null},"stats":{"duration_ms":48,"tokens":134,"cost_usd":0.000146},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:chain"}],"asked_by":["web:default:agent:main:chain"]}','announce:01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0','01m7v03b03asskk3m8q6wdjb5f',1795128667139);
INSERT INTO messages VALUES('01m7v03b03zj6z7tc4hy95wdc8','agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','01m7v03aykddsbyyexab5tb59x',2,'assistant','DO [{"call": ["sessions_spawn", {"task": "second of the chain", "label": "second"}]}, {"say": "second started"}]',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03aykddsbyyexab5tb59w',1795128667139);
INSERT INTO messages VALUES('01m7v03b08zhyzft2vsa0g8pby','agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','01m7v03aywhnnp1vxhh6x03wh7',2,'assistant','The expert answer.',NULL,'agent:expert','internal',0,NULL,NULL,NULL,'01m7v03aywhnnp1vxhh6x03wh6',1795128667144);
INSERT INTO messages VALUES('01m7v03b09snxj7bnb1ky7fdyw','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',8,'tool','{"status":"completed","code":null,"cause":null,"streamed":false,"response":"The expert answer.","partial_response":null,"run_id":"01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0","session_key":"agent:expert:delegate:c7da7d6be774875b8141b92e353129f0","agent_id":"expert","duration_ms":45}','[{"type":"tool_result","call_id":"call_4e2cd5822cc2_0","name":"delegate_to_agent","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03ayrsv9rwsfrjmhysj6b',1795128667145);
INSERT INTO messages VALUES('01m7v03b0byjz8bnxf9r4jvkj5','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',10,'assistant','asked',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03ayrsv9rwsfrjmhysj6b',1795128667147);
INSERT INTO messages VALUES('01m7v03b1h5x8akyeqgmr8qvd3','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',6,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_f9abc6033a9a_0","name":"sessions_spawn","arguments":{"task":"second of the chain","label":"second"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03b03asskk3m8q6wdjb5f',1795128667185);
INSERT INTO messages VALUES('01m7v03b1kzr615gztfc4wqbp9','agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','01m7v03b1kzr615gztfc4wqbpb',1,'user','second of the chain',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0','01m7v03b1kzr615gztfc4wqbpa',1795128667187);
INSERT INTO messages VALUES('01m7v03b1nm05b6zs1g1sdrse1','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',7,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:696d3766faa96b8e639eb5f83c66e302","run_id":"01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0"}','[{"type":"tool_result","call_id":"call_f9abc6033a9a_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03b03asskk3m8q6wdjb5f',1795128667189);
INSERT INTO messages VALUES('01m7v03b1qpwns9v7xqwc2kqnp','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',8,'assistant','second started',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03b03asskk3m8q6wdjb5f',1795128667191);
INSERT INTO messages VALUES('01m7v03b1sbm6hntzcv9ptdnmd','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',12,'assistant','Noted: g"} Result: ok The child is done. Artifacts: none [/Context]',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03azwyb34a3fvbp7qj9js',1795128667193);
INSERT INTO messages VALUES('01m7v03b32dz25thpkma7bh1vv','agent:main:chain','01m7v03ayeyc3hzcvbpdarf5bz',9,'user','[@agent:main#main] finish',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03ayeyc3hzcvbpdarf5c0","hop":2,"idempotency_key":"announce:01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:696d3766faa96b8e639eb5f83c66e302","source_run_id":"01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0","task":{"label":"second","prompt":"second of the chain","tags":[]},"result":{"status":"ok","summary":"Noted: second of the chain","artifacts":[],"error_code":null},"stats":{"duration_ms":47,"tokens":131,"cost_usd":0.000143},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:chain"}],"asked_by":["internal::","web:default:agent:main:chain"]}','announce:01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0','01m7v03b32dz25thpkma7bh1vw',1795128667234);
INSERT INTO messages VALUES('01m7v03b32g8hcttwa4dgwweq5','agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','01m7v03b1kzr615gztfc4wqbpb',2,'assistant','Noted: second of the chain',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03b1kzr615gztfc4wqbpa',1795128667234);
INSERT INTO messages VALUES('01m7v03b6rns0yrk5f0x12h8v7','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',1,'user','Go fishing. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]", "label": "fishing"}]}, {"say": "started"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:fish"}',NULL,NULL,'01m7v03b6rvpwr19xsfnnkaf9h',1795128667352);
INSERT INTO messages VALUES('01m7v03b6x02edh9z3wz4bd0t1','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_7824a8eb514a_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","label":"fishing"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03b6rvpwr19xsfnnkaf9h',1795128667357);
INSERT INTO messages VALUES('01m7v03b6y3shb8yghnyadymzq','agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','01m7v03b6ymahjgtqgw93xnk93',1,'user','DO [{"say": "DO [{\"fail\": 400}] The catch is twelve fish."}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0','01m7v03b6ymahjgtqgw93xnk92',1795128667358);
INSERT INTO messages VALUES('01m7v03b6zjay6mbdnk5f4h7a4','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',3,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77","run_id":"01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0"}','[{"type":"tool_result","call_id":"call_7824a8eb514a_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03b6rvpwr19xsfnnkaf9h',1795128667359);
INSERT INTO messages VALUES('01m7v03b71y15e4p6fk0sxheqx','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',4,'assistant','started',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03b6rvpwr19xsfnnkaf9h',1795128667361);
INSERT INTO messages VALUES('01m7v03b73ymtnhsbyeqvdjx6m','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6p',1,'user','Write. DO [{"call": ["write_file", {"path": "a.txt", "content": "hello"}]}, {"say": "written"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:ops:decided"}',NULL,NULL,'01m7v03b73ymtnhsbyeqvdjx6n',1795128667363);
INSERT INTO messages VALUES('01m7v03b78ppcxhh7e1e2zcjak','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6p',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_44d5da36239c_0","name":"write_file","arguments":{"path":"a.txt","content":"hello"}}]','agent:ops','internal',0,NULL,NULL,NULL,'01m7v03b73ymtnhsbyeqvdjx6n',1795128667368);
INSERT INTO messages VALUES('01m7v03b8jm51wbfdb27ayxfst','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',5,'user','[@agent:main#main] finish',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03b6ry8q18qm75t56akch","hop":1,"idempotency_key":"announce:01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77","source_run_id":"01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0","task":{"label":"fishing","prompt":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","tags":[]},"result":{"status":"ok","summary":"DO [{\"fail\": 400}] The catch is twelve fish.","artifacts":[],"error_code":null},"stats":{"duration_ms":52,"tokens":124,"cost_usd":0.000136},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:fish"}],"asked_by":["web:default:agent:main:fish"]}','announce:01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0','01m7v03b8jm51wbfdb27ayxfsv',1795128667410);
INSERT INTO messages VALUES('01m7v03b8jm51wbfdb27ayxfsx','agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','01m7v03b6ymahjgtqgw93xnk93',2,'assistant','DO [{"fail": 400}] The catch is twelve fish.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03b6ymahjgtqgw93xnk92',1795128667410);
INSERT INTO messages VALUES('01m7v03ba3v395zd1pw3q6jdmm','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9j',6,'assistant','I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).',NULL,'agent:main','web',1,NULL,'{"error":"provider_failed"}',NULL,'01m7v03b8jm51wbfdb27ayxfsv',1795128667459);
INSERT INTO messages VALUES('01m7v03bdn1gdafpjf3kn1p0ad','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6p',3,'tool','The user did not allow this. not today','[{"type":"tool_result","call_id":"call_44d5da36239c_0","name":"write_file","is_error":true}]','agent:ops','internal',0,NULL,NULL,NULL,'01m7v03b73ymtnhsbyeqvdjx6n',1795128667573);
INSERT INTO messages VALUES('01m7v03bdpb302s7s6gk5s02q7','agent:ops:waiting','01m7v03bdpn063ckft7zanythe',1,'user','Write b. DO [{"call": ["write_file", {"path": "b.txt", "content": "hello"}]}, {"say": "written"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:ops:waiting"}',NULL,NULL,'01m7v03bdpn063ckft7zanythd',1795128667574);
INSERT INTO messages VALUES('01m7v03bdqxv52vkfpyjmsskq1','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6p',4,'assistant','written',NULL,'agent:ops','web',1,NULL,NULL,NULL,'01m7v03b73ymtnhsbyeqvdjx6n',1795128667575);
INSERT INTO messages VALUES('01m7v03bdvck17br7and1pz42h','agent:ops:waiting','01m7v03bdpn063ckft7zanythe',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_8df6414c9fe9_0","name":"write_file","arguments":{"path":"b.txt","content":"hello"}}]','agent:ops','internal',0,NULL,NULL,NULL,'01m7v03bdpn063ckft7zanythd',1795128667579);
INSERT INTO messages VALUES('01m7v03bdvdhwjtqjngbbrpnn4','agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkd',1,'user','first question',NULL,'hook','webhook',1,'{"channel":"webhook","account":"desk","peer":"cust"}',NULL,NULL,'01m7v03bdwtdsfyeqmjt793hkc',1795128667580);
INSERT INTO messages VALUES('01m7v03bfay841kxp3rndb5ex5','agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkd',2,'assistant','Noted: first question',NULL,'agent:main','webhook',1,NULL,NULL,NULL,'01m7v03bdwtdsfyeqmjt793hkc',1795128667626);
INSERT INTO messages VALUES('01m7v03ceq9eefk91sqx093q71','agent:main:webhook:desk:dm:refused','01m7v03ceqpvw66eayeh3eym72',1,'user','a question whose reply is refused',NULL,'hook','webhook',1,'{"channel":"webhook","account":"desk","peer":"refused"}',NULL,NULL,'01m7v03ceq9eefk91sqx093q72',1795128668631);
INSERT INTO messages VALUES('01m7v03cewt0m1sy3s5fhyantb','agent:main:webhook:desk:dm:refused','01m7v03ceqpvw66eayeh3eym72',2,'assistant','Noted: a question whose reply is refused',NULL,'agent:main','webhook',1,NULL,NULL,NULL,'01m7v03ceq9eefk91sqx093q72',1795128668636);
INSERT INTO messages VALUES('01m7v03cez45dd7azvw1ced8w8','agent:main:webhook:bell:dm:cust','01m7v03cezxfqyjds5e495vd8z',1,'user','a question whose reply is cut',NULL,'hook','webhook',1,'{"channel":"webhook","account":"bell","peer":"cust"}',NULL,NULL,'01m7v03cezjaanmpkj5na3xwd0',1795128668639);
INSERT INTO messages VALUES('01m7v03cgezmee1zjqdyatbrby','agent:main:webhook:bell:dm:cust','01m7v03cezxfqyjds5e495vd8z',2,'assistant','Noted: a question whose reply is cut',NULL,'agent:main','webhook',1,NULL,NULL,NULL,'01m7v03cezjaanmpkj5na3xwd0',1795128668686);
INSERT INTO messages VALUES('01m7v03enp2hjtfx5vasjnczrs','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',1,'user','I lead a team.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:lead"}',NULL,NULL,'01m7v03enpsg5ka5bpy55y895e',1795128670902);
INSERT INTO messages VALUES('01m7v03envc12y9ngznrddked3','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',2,'assistant','Noted: I lead a team.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03enpsg5ka5bpy55y895e',1795128670907);
INSERT INTO messages VALUES('01m7v03eqqftafmzvxvvdwbg7c','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',1,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03eqqxpxj1bwp6sm0ah37','01m7v03eqqxpxj1bwp6sm0ah37',1795128670967);
INSERT INTO messages VALUES('01m7v03er1z3r1taq3h3ty9wdj','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',2,'assistant','Noted: : Draw the header. Claim it with TaskClaim if you can do it.',NULL,'agent:ops','internal',0,NULL,NULL,NULL,'01m7v03eqqxpxj1bwp6sm0ah37',1795128670977);
INSERT INTO messages VALUES('01m7v03er4xwt12rcxjqxb57s3','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',3,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[],"reply_to":[]}','news:01m7v03er4xwt12rcxjqxb57s4','01m7v03er4xwt12rcxjqxb57s4',1795128670980);
INSERT INTO messages VALUES('01m7v03erdjrefqq739h5s0h95','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',3,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03erdjrefqq739h5s0h96','01m7v03erdjrefqq739h5s0h96',1795128670989);
INSERT INTO messages VALUES('01m7v03ergq1w5ahsyre17f4f2','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03eq2dkhkrrgas856nmm2',1,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03ergq1w5ahsyre17f4f3','01m7v03ergq1w5ahsyre17f4f3',1795128670992);
INSERT INTO messages VALUES('01m7v03ernz2wwhk26a6hhqkb4','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',4,'assistant','Noted: e: Write the text. Claim it with TaskClaim if you can do it.',NULL,'agent:ops','internal',0,NULL,NULL,NULL,'01m7v03erdjrefqq739h5s0h96',1795128670997);
INSERT INTO messages VALUES('01m7v03erqqtzkhxnzbr7sm29w','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',5,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03erqqtzkhxnzbr7sm29x','01m7v03erqqtzkhxnzbr7sm29x',1795128670999);
INSERT INTO messages VALUES('01m7v03erzyprbwa9bacztvgrj','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',6,'assistant','Noted: s free: Under way. Claim it with TaskClaim if you can do it.',NULL,'agent:ops','internal',0,NULL,NULL,NULL,'01m7v03erqqtzkhxnzbr7sm29x',1795128671007);
INSERT INTO messages VALUES('01m7v03es5h25cq3xrwv9xhjyw','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',7,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03es5wwhv4vjhwazgdfmv','01m7v03es5wwhv4vjhwazgdfmv',1795128671013);
INSERT INTO messages VALUES('01m7v03es5wwhv4vjhwazgdfmy','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',7,'user','[@agent:ops#ops] finish',NULL,'agent:ops','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03enxs02p3w3r5d5fqnpy","hop":1,"idempotency_key":"announce:01m7v03enx0sh53n4sd1cmd5t1-8","source_agent_id":"ops","source_agent_name":"ann (ops)","source_session_key":"agent:ops:teammate:01m7v03eprwy0p4998x3yss5by","source_run_id":"site#1","task":{"label":"#1 Draw the header","prompt":"In blue","tags":[]},"result":{"status":"ok","summary":"Drawn\nUnblocked: #2 Put it on the page","artifacts":[{"kind":"file","path":"header.svg"}],"error_code":null},"stats":{"duration_ms":8,"tokens":null,"cost_usd":null},"reply_to":[],"asked_by":[]}','announce:01m7v03enx0sh53n4sd1cmd5t1-8','01m7v03es5wwhv4vjhwazgdfmz',1795128671013);
INSERT INTO messages VALUES('01m7v03esgmzhj164jy2kmj1pb','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',8,'user','[@agent:Made#made] finish',NULL,'agent:made','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03enxs02p3w3r5d5fqnpy","hop":1,"idempotency_key":"announce:01m7v03enx0sh53n4sd1cmd5t1-11","source_agent_id":"made","source_agent_name":"carl (Made)","source_session_key":"agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1","source_run_id":"site#5","task":{"label":"#5 Impossible","prompt":"","tags":[]},"result":{"status":"error","summary":"No way\nWhat waits for it stays blocked until you decide: TaskUpdate with dropDependsOn lets it go on without.","artifacts":[],"error_code":null},"stats":{"duration_ms":3,"tokens":null,"cost_usd":null},"reply_to":[],"asked_by":[]}','announce:01m7v03enx0sh53n4sd1cmd5t1-11','01m7v03es5wwhv4vjhwazgdfmz',1795128671024);
INSERT INTO messages VALUES('01m7v03esrqhkw06n596w2kpy0','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',6,'assistant','Noted: ng. It holds a task, and goes on when somebody writes to it.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03er4xwt12rcxjqxb57s4',1795128671032);
INSERT INTO messages VALUES('01m7v03et4yym4evzensfqtat5','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03eq2dkhkrrgas856nmm2',2,'assistant','Noted:  free: Impossible. Claim it with TaskClaim if you can do it.',NULL,'agent:expert','internal',0,NULL,NULL,NULL,'01m7v03ergq1w5ahsyre17f4f3',1795128671044);
INSERT INTO messages VALUES('01m7v03etqwqbvzpbfw72v6f6f','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',8,'assistant','Noted: ut it on the page. Claim it with TaskClaim if you can do it.',NULL,'agent:ops','internal',0,NULL,NULL,NULL,'01m7v03es5wwhv4vjhwazgdfmv',1795128671063);
INSERT INTO messages VALUES('01m7v03evbzq1tsx883g8q6k8j','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',9,'assistant','Noted: ng. It holds a task, and goes on when somebody writes to it.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03es5wwhv4vjhwazgdfmz',1795128671083);
INSERT INTO messages VALUES('01m7v03evmkhsg0chdannkx18y','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',1,'user','hello from a paired person',NULL,'user','telegram',1,'{"channel":"telegram","account":"main","peer":"8"}','{"sender":"8","sender_name":"Person 8","shared":false}',NULL,'01m7v03evmz4q1ns5cz7mf5r49',1795128671092);
INSERT INTO messages VALUES('01m7v03exb5020bw5gaxxf7a16','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',2,'assistant','Noted: hello from a paired person',NULL,'agent:main','telegram',1,NULL,NULL,NULL,'01m7v03evmz4q1ns5cz7mf5r49',1795128671147);
INSERT INTO messages VALUES('01m7v03hqetepbq8adtrn0mxhx','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',9,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03hqetepbq8adtrn0mxhy','01m7v03hqetepbq8adtrn0mxhy',1795128674030);
INSERT INTO messages VALUES('01m7v03hqwjjdmzqkmbwyqq2c2','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03epsfh7g9gr1ye4qvwbk',10,'assistant','read',NULL,'agent:ops','internal',0,NULL,NULL,NULL,'01m7v03hqetepbq8adtrn0mxhy',1795128674044);
INSERT INTO messages VALUES('01m7v03hqyk1ja0tqf789z0d29','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',10,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[],"reply_to":[]}','news:01m7v03hqyk1ja0tqf789z0d2a','01m7v03hqyk1ja0tqf789z0d2a',1795128674046);
INSERT INTO messages VALUES('01m7v03hsmrk5p1yzv3bacwmke','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',11,'assistant','Noted: ng. It holds a task, and goes on when somebody writes to it.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03hqyk1ja0tqf789z0d2a',1795128674100);
INSERT INTO messages VALUES('01m7v03kp5prtwvrajpbwh3yvj','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03eq2dkhkrrgas856nmm2',3,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03kp5prtwvrajpbwh3yvk','01m7v03kp5prtwvrajpbwh3yvk',1795128676037);
INSERT INTO messages VALUES('01m7v03kpjtkb0dkm1s9sd0z0f','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03eq2dkhkrrgas856nmm2',4,'assistant','I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).',NULL,'agent:expert','internal',0,NULL,'{"error":"provider_failed"}',NULL,'01m7v03kp5prtwvrajpbwh3yvk',1795128676050);
INSERT INTO messages VALUES('01m7v03kpkx0dnftyv7ehdnajp','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',12,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[],"reply_to":[]}','news:01m7v03kpkxfycg1keb16rnrrh','01m7v03kpkxfycg1keb16rnrrh',1795128676051);
INSERT INTO messages VALUES('01m7v03kr4sz8xtwcd6ezymjzv','agent:main:lead','01m7v03enpsg5ka5bpy55y895f',13,'assistant','Noted: failed) It is tried again while mail or a task waits for it.',NULL,'agent:main','internal',0,NULL,NULL,NULL,'01m7v03kpkxfycg1keb16rnrrh',1795128676100);
INSERT INTO messages VALUES('01m7v03pm1rxgqdep49qp9g6kz','agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1','01m7v03eqdct1ghf9f31z2q892',1,'user','[@team:site] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"site","asked_by":[]}','news:01m7v03pm1rxgqdep49qp9g6m0','01m7v03pm1rxgqdep49qp9g6m0',1795128679041);
INSERT INTO messages VALUES('01m7v03sj3w1cxqmax77kw4f2z','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',1,'user','Make a team. DO [{"call": ["TeamCreate", {"team_name": "dock", "description": "By tools"}]}, {"call": ["TeammateSpawn", {"team_name": "dock", "name": "dora", "agent_id": "expert", "task": "DO [{\"hang\": true}]"}]}, {"call": ["TaskCreate", {"team_name": "dock", "subject": "Sweep", "description": "All of it"}]}, {"call": ["SendMessage", {"team_name": "dock", "recipient": "dora", "content": "Hello Dora", "summary": "hello"}]}, {"say": "made"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:second"}',NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682051);
INSERT INTO messages VALUES('01m7v03sj844ac1n377655v0vy','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_94d24ff82015_0","name":"TeamCreate","arguments":{"team_name":"dock","description":"By tools"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682056);
INSERT INTO messages VALUES('01m7v03sje3qgxctz9tc702jdg','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',3,'tool','{"team_id":"01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0","team_name":"dock","lead_session_key":"agent:main:second"}','[{"type":"tool_result","call_id":"call_94d24ff82015_0","name":"TeamCreate","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682062);
INSERT INTO messages VALUES('01m7v03sjka4web0hwe9tkb402','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',4,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_0efab1f6048b_0","name":"TeammateSpawn","arguments":{"team_name":"dock","name":"dora","agent_id":"expert","task":"DO [{\"hang\": true}]"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682067);
INSERT INTO messages VALUES('01m7v03sjm2sq5eawrnvxe4b86','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjmkdfjhqmye56d69z6',1,'user','DO [{"hang": true}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"asked_by":["web:default:agent:main:second"]}','begin:agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjm4mexnphw1c0q2xkc',1795128682068);
INSERT INTO messages VALUES('01m7v03sjvev2jq4y7w7a840y6','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',5,'tool','{"name":"dora","session_key":"agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0","inherited":[]}','[{"type":"tool_result","call_id":"call_0efab1f6048b_0","name":"TeammateSpawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682075);
INSERT INTO messages VALUES('01m7v03sk0geeb27jqj30az521','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',6,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_c1579fed917b_0","name":"TaskCreate","arguments":{"team_name":"dock","subject":"Sweep","description":"All of it"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682080);
INSERT INTO messages VALUES('01m7v03sk4mcd4td5haasxz902','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',7,'tool','{"task_id":1}','[{"type":"tool_result","call_id":"call_c1579fed917b_0","name":"TaskCreate","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682084);
INSERT INTO messages VALUES('01m7v03sk6ym628cqrfayy82eq','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',8,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_a72f282adb42_0","name":"SendMessage","arguments":{"team_name":"dock","recipient":"dora","content":"Hello Dora","summary":"hello"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682086);
INSERT INTO messages VALUES('01m7v03sk9drv19xn16bmze7bb','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',9,'tool','{"message_ids":["01m7v03sj3w1cxqmax77kw4f30-call_a72f282adb42_0-dora"],"recipients":["dora"],"request_id":null}','[{"type":"tool_result","call_id":"call_a72f282adb42_0","name":"SendMessage","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682089);
INSERT INTO messages VALUES('01m7v03skcxd64rnytyffa2d44','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',10,'assistant','made',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30',1795128682092);
INSERT INTO messages VALUES('01m7v03sm7q3ejmt16n8jevyrz','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjmkdfjhqmye56d69z6',2,'assistant','Noted: Hello Dora',NULL,'agent:expert','internal',0,NULL,NULL,NULL,'01m7v03sjm4mexnphw1c0q2xkc',1795128682119);
INSERT INTO messages VALUES('01m7v03sm9a33a17kdp0st414h','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',11,'user','[@team:dock] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"dock","asked_by":["web:default:agent:main:second"],"reply_to":[{"channel":"web","account":"default","peer":"agent:main:second"}]}','news:01m7v03sm9a33a17kdp0st414j','01m7v03sm9a33a17kdp0st414j',1795128682121);
INSERT INTO messages VALUES('01m7v03snvsmn07rkmpfjm05qt','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',12,'assistant','Noted: dora is idle: available.',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03sm9a33a17kdp0st414j',1795128682171);
INSERT INTO messages VALUES('01m7v03wh66rpnac04nnrakhp7','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',13,'user','End it. DO [{"call": ["TeamShutdown", {"team_name": "dock", "reason": "done"}]}, {"say": "asked"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:second"}',NULL,NULL,'01m7v03wh6yat2hrm1pw8p1q6d',1795128685094);
INSERT INTO messages VALUES('01m7v03whd0ghxfnt4nt4s1pd6','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',14,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_7a5a8e6feb00_0","name":"TeamShutdown","arguments":{"team_name":"dock","reason":"done"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wh6yat2hrm1pw8p1q6d',1795128685101);
INSERT INTO messages VALUES('01m7v03wheenhr8q166srfq6fw','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjmkdfjhqmye56d69z6',3,'user','[@team:dock] news',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}','{"internal":true,"kind":"team_news","team":"dock","asked_by":["web:default:agent:main:second"]}','news:01m7v03whet6fz0cekbgsmrx8x','01m7v03whet6fz0cekbgsmrx8x',1795128685102);
INSERT INTO messages VALUES('01m7v03whqnesqw5ydyved21kq','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',15,'tool','{"status":"shutting_down","members":[{"name":"dora","request_id":"01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora-stop","answer":null}]}','[{"type":"tool_result","call_id":"call_7a5a8e6feb00_0","name":"TeamShutdown","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wh6yat2hrm1pw8p1q6d',1795128685111);
INSERT INTO messages VALUES('01m7v03whwrgrseea25y3nvg61','agent:main:second','01m7v03sj3w1cxqmax77kw4f31',16,'assistant','asked',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03wh6yat2hrm1pw8p1q6d',1795128685116);
INSERT INTO messages VALUES('01m7v03whznsg81fgjq3693nm9','agent:main:waits','01m7v03whznsg81fgjq3693nmb',1,'user','Delegate and wait. DO [{"call": ["delegate_to_agent", {"agent_id": "expert", "task": "DO [{\"hang\": true, \"partial\": \"So far \"}]", "mode": "sync", "stream": true, "timeout_ms": 300000}]}, {"say": "done"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:waits"}',NULL,NULL,'01m7v03whznsg81fgjq3693nma',1795128685119);
INSERT INTO messages VALUES('01m7v03wj25z4z7er3mt7vy04g','agent:main:parent','01m7v03wj2zzsyr9ye1kxzcn0p',1,'user','Begin one that runs. DO [{"call": ["sessions_spawn", {"task": "DO [{\"hang\": true}]", "label": "still running", "cleanup": "delete"}]}, {"say": "started"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:parent"}',NULL,NULL,'01m7v03wj2gsswq7cxxssw8hte',1795128685122);
INSERT INTO messages VALUES('01m7v03wj63k7wx8kdk08rnnjj','agent:main:waits','01m7v03whznsg81fgjq3693nmb',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_b364413fe2da_0","name":"delegate_to_agent","arguments":{"agent_id":"expert","task":"DO [{\"hang\": true, \"partial\": \"So far \"}]","mode":"sync","stream":true,"timeout_ms":300000}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03whznsg81fgjq3693nma',1795128685126);
INSERT INTO messages VALUES('01m7v03wj6xjm7tw64wr2gcbwm','agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62','01m7v03wj6xjm7tw64wr2gcbwp',1,'user','DO [{"hang": true, "partial": "So far "}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03whznsg81fgjq3693nma-call_b364413fe2da_0','01m7v03wj6xjm7tw64wr2gcbwn',1795128685126);
INSERT INTO messages VALUES('01m7v03wk0aa56dvkn19dagxxe','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjmkdfjhqmye56d69z6',4,'assistant','Noted: 0_0-dora-stop, approve true or false, and a reason if false.',NULL,'agent:expert','internal',0,NULL,NULL,NULL,'01m7v03whet6fz0cekbgsmrx8x',1795128685151);
INSERT INTO messages VALUES('01m7v03wkk6pkdwm0xxhpfwnst','agent:main:parent','01m7v03wj2zzsyr9ye1kxzcn0p',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_c15ca6d4f67c_0","name":"sessions_spawn","arguments":{"task":"DO [{\"hang\": true}]","label":"still running","cleanup":"delete"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wj2gsswq7cxxssw8hte',1795128685171);
INSERT INTO messages VALUES('01m7v03wknvp6m92a671qtc5ke','agent:main:subagent:1586df04aabcb1b0e5844af08a707af4','01m7v03wknvp6m92a671qtc5kg',1,'user','DO [{"hang": true}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v03wj2gsswq7cxxssw8hte-call_c15ca6d4f67c_0','01m7v03wknvp6m92a671qtc5kf',1795128685173);
INSERT INTO messages VALUES('01m7v03wkqjvhdhyxf1wzj1te0','agent:main:parent','01m7v03wj2zzsyr9ye1kxzcn0p',3,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:1586df04aabcb1b0e5844af08a707af4","run_id":"01m7v03wj2gsswq7cxxssw8hte-call_c15ca6d4f67c_0"}','[{"type":"tool_result","call_id":"call_c15ca6d4f67c_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wj2gsswq7cxxssw8hte',1795128685175);
INSERT INTO messages VALUES('01m7v03wkw3mdh6fcef1h472wn','agent:main:parent','01m7v03wj2zzsyr9ye1kxzcn0p',4,'assistant','started',NULL,'agent:main','web',1,NULL,NULL,NULL,'01m7v03wj2gsswq7cxxssw8hte',1795128685180);
INSERT INTO messages VALUES('01m7v03wkz9gy2ncr8m7md20kq','agent:main:club','01m7v03wkzxdybjy7wcx8abdm7',1,'user','What do all of you think? DO [{"hang": true}]','[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"}]','user','web',1,'{"channel":"web","account":"default","peer":"agent:main:club"}','{"round":{"id":"01m7v03wkydvqfhjh1zqz6d37x","seat":0}}','round-01m7v03wkydvqfhjh1zqz6d37x','01m7v03wkz9gy2ncr8m7md20kr',1795128685183);
INSERT INTO messages VALUES('01m7v03wm3533tnvz6c61sverv','agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj5',1,'user','Do two steps. DO [{"call": ["todo", {"items": [{"text": "step one", "state": "done"}]}]}, {"hang": true}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:cut"}',NULL,NULL,'01m7v03wm3ncqqd2f0qzf71bj4',1795128685187);
INSERT INTO messages VALUES('01m7v03wm5r3nv1nzxbjzq8s25','agent:main:tool','01m7v03wm5r3nv1nzxbjzq8s27',1,'user','Sleep in a shell. DO [{"call": ["shell", {"command": "sleep 40"}]}, {"say": "slept"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:tool"}',NULL,NULL,'01m7v03wm5r3nv1nzxbjzq8s26',1795128685189);
INSERT INTO messages VALUES('01m7v03wm7qyytqwzmghqn4dpq','agent:main:steered','01m7v03wm7vbz6zb61xrwq6npp',1,'user','A long task. DO [{"slow": 3}, {"call": ["todo", {"items": [{"text": "long task"}]}]}, {"say": "the long task is done"}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:steered"}',NULL,NULL,'01m7v03wm7qyytqwzmghqn4dpr',1795128685191);
INSERT INTO messages VALUES('01m7v03wm91mj0hty9gxc2y7xm','agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj5',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_e152ddce292f_0","name":"todo","arguments":{"items":[{"text":"step one","state":"done"}]}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wm3ncqqd2f0qzf71bj4',1795128685193);
INSERT INTO messages VALUES('01m7v03wma8csn0naz701k7fma','agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj5',3,'tool',replace('1. [x] step one\n1 of 1 done','\n',char(10)),'[{"type":"tool_result","call_id":"call_e152ddce292f_0","name":"todo","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wm3ncqqd2f0qzf71bj4',1795128685194);
INSERT INTO messages VALUES('01m7v03wnrkf52js6z4s8n48kx','agent:main:tool','01m7v03wm5r3nv1nzxbjzq8s27',2,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_65cb373fc9b3_0","name":"shell","arguments":{"command":"sleep 40"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wm5r3nv1nzxbjzq8s26',1795128685240);
INSERT INTO messages VALUES('01m7v03xkjp6ey96tw71823fsw','agent:main:steered','01m7v03wm7vbz6zb61xrwq6npp',5,'user','Quick, something else. DO [{"hang": true}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:steered"}',NULL,NULL,'01m7v03xkjp6ey96tw71823fsx',1795128686194);
INSERT INTO messages VALUES('01m7v03zj9pazjbfg5jp8eryz4','agent:main:steered','01m7v03wm7vbz6zb61xrwq6npp',3,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_524029b3fb84_0","name":"todo","arguments":{"items":[{"text":"long task"}]}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wm7qyytqwzmghqn4dpr',1795128688201);
INSERT INTO messages VALUES('01m7v03zjatazaemq4vxvzjtd6','agent:main:steered','01m7v03wm7vbz6zb61xrwq6npp',4,'tool',replace('1. [ ] long task\n0 of 1 done','\n',char(10)),'[{"type":"tool_result","call_id":"call_524029b3fb84_0","name":"todo","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v03wm7qyytqwzmghqn4dpr',1795128688202);
INSERT INTO messages VALUES('01m7v041gn4k0kwdtk8n314tsp','agent:main:held','01m7v041gn5bhdsvh94dv1y9mp',1,'user','First of three. DO [{"hang": true}]',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:held"}',NULL,NULL,'01m7v041gn4k0kwdtk8n314tsq',1795128690197);
INSERT INTO messages VALUES('01m7v043f9c2g0emrp07kc7j1n','agent:main:held','01m7v041gn5bhdsvh94dv1y9mp',2,'user','Second of three.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:held"}',NULL,'second','01m7v043f9tagcntyr22jnpta4',1795128692201);
INSERT INTO messages VALUES('01m7v043fe96epze8c0qr0eczk','agent:main:held','01m7v041gn5bhdsvh94dv1y9mp',3,'user','Third of three.',NULL,'user','web',1,'{"channel":"web","account":"default","peer":"agent:main:held"}',NULL,NULL,'01m7v043f9tagcntyr22jnpta4',1795128692206);
INSERT INTO messages VALUES('01m7v043fn3p64fycz4apc6xne','agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8p',1,'user','a question whose reply waits',NULL,'hook','webhook',1,'{"channel":"webhook","account":"desk","peer":"down"}',NULL,NULL,'01m7v043fnr1kfc89kx96f4k8n',1795128692213);
INSERT INTO messages VALUES('01m7v043fwxgx2p8bsze4na3kt','agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8p',2,'assistant','Noted: a question whose reply waits',NULL,'agent:main','webhook',1,NULL,NULL,NULL,'01m7v043fnr1kfc89kx96f4k8n',1795128692220);
INSERT INTO messages VALUES('01m7v044c5m1evcz94kb8tmrx9','agent:main:telegram:dm:42','01m7v044c60d7zdy7jtgb6m31a',1,'user','DO [{"hang": true, "partial": "A long thought that is not yet at its end, and so is shown as a draft in the chat while it grows. "}]',NULL,'user','telegram',1,'{"channel":"telegram","account":"main","peer":"42"}','{"sender":"42","sender_name":"Person 42","shared":false}',NULL,'01m7v044c60d7zdy7jtgb6m319',1795128693126);
INSERT INTO messages VALUES('01m7v044c80h1epdspb7hx5983','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',3,'user','DO [{"call": ["sessions_spawn", {"task": "Work for a paired person. DO [{\"hang\": true}]", "label": "of a person"}]}, {"say": "started"}]',NULL,'user','telegram',1,'{"channel":"telegram","account":"main","peer":"8"}','{"sender":"8","sender_name":"Person 8","shared":false}',NULL,'01m7v044c8vs7bvznym6grw2ns',1795128693128);
INSERT INTO messages VALUES('01m7v044dv106djm7kg0hdzbf9','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',4,'assistant','I will call a tool.','[{"type":"tool_call","id":"call_e15d42540bf2_0","name":"sessions_spawn","arguments":{"task":"Work for a paired person. DO [{\"hang\": true}]","label":"of a person"}}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v044c8vs7bvznym6grw2ns',1795128693179);
INSERT INTO messages VALUES('01m7v044dx93n7x3njxmdnfpke','agent:main:subagent:608cd6776b642e3598459cd7697cbb26','01m7v044dx93n7x3njxmdnfpkg',1,'user','Work for a paired person. DO [{"hang": true}]',NULL,'agent:main','internal',0,'{"channel":"internal","account":"","peer":""}',NULL,'01m7v044c8vs7bvznym6grw2ns-call_e15d42540bf2_0','01m7v044dx93n7x3njxmdnfpkf',1795128693181);
INSERT INTO messages VALUES('01m7v044dzgfftecp8myfr77r4','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',5,'tool','{"status":"accepted","child_session_key":"agent:main:subagent:608cd6776b642e3598459cd7697cbb26","run_id":"01m7v044c8vs7bvznym6grw2ns-call_e15d42540bf2_0"}','[{"type":"tool_result","call_id":"call_e15d42540bf2_0","name":"sessions_spawn","is_error":false}]','agent:main','internal',0,NULL,NULL,NULL,'01m7v044c8vs7bvznym6grw2ns',1795128693183);
INSERT INTO messages VALUES('01m7v044e1e662wp9gvhbdpgq5','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r4a',6,'assistant','started',NULL,'agent:main','telegram',1,NULL,NULL,NULL,'01m7v044c8vs7bvznym6grw2ns',1795128693185);
INSERT INTO messages VALUES('announce:01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0','agent:main:family','01m7v03awrvexcqn1jrjceqq6h',9,'user','[@agent:expert#expert] finish',NULL,'agent:expert','internal',0,NULL,'{"internal":true,"kind":"subagent_announce","trace_id":"01m7v03ayrsv9rwsfrjmhysj6d","hop":1,"idempotency_key":"announce:01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0","source_agent_id":"expert","source_agent_name":"expert","source_session_key":"agent:expert:delegate:c7da7d6be774875b8141b92e353129f0","source_run_id":"01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0","task":{"label":"DO [{\"say\": \"The expert answer.\"}]","prompt":"DO [{\"say\": \"The expert answer.\"}]","tags":[]},"result":{"status":"ok","summary":"The expert answer.","artifacts":[],"error_code":null},"stats":{"duration_ms":47,"tokens":124,"cost_usd":0.000136},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:family"}],"asked_by":["web:default:agent:main:family"]}','announce:01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0','01m7v03ayrsv9rwsfrjmhysj6b',1795128667147);
CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'compact')),
  lane TEXT NOT NULL,
  priority INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'steered')),
  held INTEGER NOT NULL,
  was_held INTEGER NOT NULL,
  inputs INTEGER NOT NULL,
  steers INTEGER NOT NULL,
  hop INTEGER NOT NULL,
  trace_id TEXT NOT NULL,
  node TEXT,
  lease_until INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  model TEXT,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  reply_id TEXT,
  continued_by TEXT,
  error_code TEXT,
  error TEXT,
  queued_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
) STRICT;
INSERT INTO jobs VALUES(1,'01m7v037b8mcgzxjdrdvahf0qs','agent:main:main','main','turn','main',0,'done',0,0,1,1,0,'01m7v037b8mcgzxjdrdvahf0qv','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',402,36,30,'01m7v037d0gfv67pgk6byqcs1j',NULL,NULL,NULL,1795128663400,1795128663400,1795128663456);
INSERT INTO jobs VALUES(2,'01m7v037d2xfq995mv8mt1nxcf','agent:main:main','main','turn','main',0,'done',0,0,1,1,0,'01m7v037d2xfq995mv8mt1nxch','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',145,12,10,'01m7v037d61nvftr1yxn6hnwp1',NULL,NULL,NULL,1795128663458,1795128663458,1795128663462);
INSERT INTO jobs VALUES(3,'01m7v037d8r3rg3w0k5s3xgxyr','agent:main:main','main','turn','main',0,'done',0,0,1,1,0,'01m7v037d8s41yffghwq57erqb','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',150,12,10,'01m7v037eq43gtb2nw3843bm8s',NULL,NULL,NULL,1795128663464,1795128663464,1795128663511);
INSERT INTO jobs VALUES(4,'01m7v037esyfxq093ecv9zj4r5','agent:main:main','main','turn','main',0,'done',0,0,1,1,0,'01m7v037esyfxq093ecv9zj4r7','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',337,24,20,'01m7v037gf8bsc4hq249b01qsv',NULL,NULL,NULL,1795128663513,1795128663513,1795128663566);
INSERT INTO jobs VALUES(5,'01m7v037ggc75s6ce1vjj07dv1','agent:main:main','main','turn','main',0,'done',0,0,1,1,0,'01m7v037ggvqqdypkmnq8hgsb3','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',370,24,20,'01m7v037j2xh3yf17sz6wrm80n',NULL,NULL,NULL,1795128663568,1795128663568,1795128663618);
INSERT INTO jobs VALUES(6,'01m7v037j7zycsknrwxz7h2ts3','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037j7zycsknrwxz7h2ts5','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',117,12,10,'01m7v037kpxfc2fwvznw5qfga6',NULL,NULL,NULL,1795128663623,1795128663623,1795128663670);
INSERT INTO jobs VALUES(7,'01m7v037krwbbsr9b3memafx3e','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037krwbbsr9b3memafx3g','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',119,12,10,'01m7v037n63q3v15swjawaaxd2',NULL,NULL,NULL,1795128663672,1795128663672,1795128663718);
INSERT INTO jobs VALUES(8,'01m7v037n8zzj109hq7ehxy8fn','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037n8zzj109hq7ehxy8fq','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',123,12,10,'01m7v037pwqgn1t2fabnh3yvsj',NULL,NULL,NULL,1795128663720,1795128663720,1795128663772);
INSERT INTO jobs VALUES(9,'01m7v037pywqjydkrqxq69dvjz','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037pywqjydkrqxq69dvk1','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',127,12,10,'01m7v037repht8gdyjzes6xen1',NULL,NULL,NULL,1795128663774,1795128663774,1795128663822);
INSERT INTO jobs VALUES(10,'01m7v037rgt4fz4qvxcs6ptx91','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037rgt4fz4qvxcs6ptx93','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',131,12,10,'01m7v037syt12ahkvv9dw2z79k',NULL,NULL,NULL,1795128663824,1795128663824,1795128663870);
INSERT INTO jobs VALUES(11,'01m7v037t0nbj97fg2bwvpdy22','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v037t0wzeynv3n5mqqpnxd','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',136,12,10,'01m7v037ve71eje1kpsg3z07zn',NULL,NULL,NULL,1795128663872,1795128663872,1795128663918);
INSERT INTO jobs VALUES(12,'01m7v037vgygrh36wm91zv9k7f','agent:main:folded','main','compact','main',3,'done',0,0,0,0,0,'01m7v037vgygrh36wm91zv9k7h','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',247,24,20,NULL,NULL,NULL,NULL,1795128663920,1795128663920,1795128663928);
INSERT INTO jobs VALUES(13,'01m7v03asb53d0ke5ptyy27wtf','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v03asbqkh5cxw90kjn2b5h','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',117,12,10,'01m7v03asgyf5g7ky72qwgky4e',NULL,NULL,NULL,1795128666923,1795128666923,1795128666928);
INSERT INTO jobs VALUES(14,'01m7v03askfr4w05151wn81e75','agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty','made','turn','main',0,'done',0,0,1,1,0,'01m7v03askjm176dafrw3n84yr','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',107,12,10,'01m7v03av1p3hk02mrm2rzrpx1',NULL,NULL,NULL,1795128666931,1795128666931,1795128666977);
INSERT INTO jobs VALUES(15,'01m7v03av7enh89t3h2fyhx6s2','agent:main:folded','main','turn','main',0,'done',0,0,1,1,0,'01m7v03av7enh89t3h2fyhx6s4','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',109,12,10,'01m7v03awpjfedxyrhvk79pk1b',NULL,NULL,NULL,1795128666983,1795128666983,1795128667030);
INSERT INTO jobs VALUES(16,'01m7v03awrvexcqn1jrjceqq6g','agent:main:family','main','turn','main',0,'done',0,0,1,1,0,'01m7v03awrxwmw9ms3w61k30s8','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',258,24,20,'01m7v03aycy5z5ky3k9qxk7651',NULL,NULL,NULL,1795128667032,1795128667032,1795128667084);
INSERT INTO jobs VALUES(17,'01m7v03ay8s41a05ts6x0gzknm','agent:main:subagent:a865d4218234ea07dee68c5200cb1199','main','turn','subagent',3,'done',0,0,1,0,1,'01m7v03awrxwmw9ms3w61k30s8','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',120,12,10,'01m7v03azwyb34a3fvbp7qj9jv',NULL,NULL,NULL,1795128667080,1795128667080,1795128667131);
INSERT INTO jobs VALUES(18,'01m7v03ayek0hjak6hta5g58sy','agent:main:chain','main','turn','main',0,'done',0,0,1,1,0,'01m7v03ayeyc3hzcvbpdarf5c0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',270,24,20,'01m7v03aypz0gd8t3kepgpmvhh',NULL,NULL,NULL,1795128667086,1795128667086,1795128667094);
INSERT INTO jobs VALUES(19,'01m7v03aykddsbyyexab5tb59w','agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','main','turn','subagent',3,'done',0,0,1,0,1,'01m7v03ayeyc3hzcvbpdarf5c0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',122,12,10,'01m7v03b03zj6z7tc4hy95wdc8',NULL,NULL,NULL,1795128667091,1795128667091,1795128667139);
INSERT INTO jobs VALUES(20,'01m7v03ayrsv9rwsfrjmhysj6b','agent:main:family','main','turn','main',0,'done',0,0,1,1,0,'01m7v03ayrsv9rwsfrjmhysj6d','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',304,24,20,'01m7v03b0byjz8bnxf9r4jvkj5',NULL,NULL,NULL,1795128667096,1795128667096,1795128667147);
INSERT INTO jobs VALUES(21,'01m7v03aywhnnp1vxhh6x03wh6','agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','expert','turn','subagent',3,'done',0,0,1,0,1,'01m7v03ayrsv9rwsfrjmhysj6d','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',112,12,10,'01m7v03b08zhyzft2vsa0g8pby',NULL,NULL,NULL,1795128667100,1795128667100,1795128667144);
INSERT INTO jobs VALUES(22,'01m7v03azwyb34a3fvbp7qj9js','agent:main:family','main','turn','internal_announce',3,'done',0,1,1,0,1,'01m7v03awrxwmw9ms3w61k30s8','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',183,12,10,'01m7v03b1sbm6hntzcv9ptdnmd',NULL,NULL,NULL,1795128667132,1795128667148,1795128667193);
INSERT INTO jobs VALUES(23,'01m7v03b03asskk3m8q6wdjb5f','agent:main:chain','main','turn','internal_announce',3,'done',0,0,1,0,1,'01m7v03ayeyc3hzcvbpdarf5c0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',341,24,20,'01m7v03b1qpwns9v7xqwc2kqnp',NULL,NULL,NULL,1795128667139,1795128667141,1795128667191);
INSERT INTO jobs VALUES(24,'01m7v03b1kzr615gztfc4wqbpa','agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','main','turn','subagent',3,'done',0,0,1,0,2,'01m7v03ayeyc3hzcvbpdarf5c0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',119,12,10,'01m7v03b32g8hcttwa4dgwweq5',NULL,NULL,NULL,1795128667187,1795128667187,1795128667234);
INSERT INTO jobs VALUES(25,'01m7v03b32dz25thpkma7bh1vw','agent:main:chain','main','turn','internal_announce',3,'queued',2,1,1,0,2,'01m7v03ayeyc3hzcvbpdarf5c0',NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128667234,NULL,NULL);
INSERT INTO jobs VALUES(26,'01m7v03b6rvpwr19xsfnnkaf9h','agent:main:fish','main','turn','main',0,'done',0,0,1,1,0,'01m7v03b6ry8q18qm75t56akch','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',253,24,20,'01m7v03b71y15e4p6fk0sxheqx',NULL,NULL,NULL,1795128667352,1795128667352,1795128667361);
INSERT INTO jobs VALUES(27,'01m7v03b6ymahjgtqgw93xnk92','agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','main','turn','subagent',3,'done',0,0,1,0,1,'01m7v03b6ry8q18qm75t56akch','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',112,12,10,'01m7v03b8jm51wbfdb27ayxfsx',NULL,NULL,NULL,1795128667358,1795128667358,1795128667410);
INSERT INTO jobs VALUES(28,'01m7v03b73ymtnhsbyeqvdjx6n','agent:ops:decided','ops','turn','main',0,'done',0,0,1,1,0,'01m7v03b73ymtnhsbyeqvdjx6q','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',233,24,20,'01m7v03bdqxv52vkfpyjmsskq1',NULL,NULL,NULL,1795128667363,1795128667363,1795128667575);
INSERT INTO jobs VALUES(29,'01m7v03b8jm51wbfdb27ayxfsv','agent:main:fish','main','turn','internal_announce',3,'failed',0,0,1,0,1,'01m7v03b6ry8q18qm75t56akch','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,NULL,0,0,0,'01m7v03ba3v395zd1pw3q6jdmm',NULL,'provider_failed','I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).',1795128667410,1795128667411,1795128667459);
INSERT INTO jobs VALUES(30,'01m7v03bdpn063ckft7zanythd','agent:ops:waiting','ops','turn','main',0,'running',0,0,1,1,0,'01m7v03bdpn063ckft7zanythf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128667574,1795128667574,NULL);
INSERT INTO jobs VALUES(31,'01m7v03bdwtdsfyeqmjt793hkc','agent:main:webhook:desk:dm:cust','main','turn','main',2,'done',0,0,1,0,0,'01m7v03bdwtdsfyeqmjt793hke','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',117,12,10,'01m7v03bfay841kxp3rndb5ex5',NULL,NULL,NULL,1795128667580,1795128667580,1795128667626);
INSERT INTO jobs VALUES(32,'01m7v03ceq9eefk91sqx093q72','agent:main:webhook:desk:dm:refused','main','turn','main',2,'done',0,0,1,0,0,'01m7v03ceqpvw66eayeh3eym73','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',111,12,10,'01m7v03cewt0m1sy3s5fhyantb',NULL,NULL,NULL,1795128668631,1795128668631,1795128668636);
INSERT INTO jobs VALUES(33,'01m7v03cezjaanmpkj5na3xwd0','agent:main:webhook:bell:dm:cust','main','turn','main',2,'done',0,0,1,0,0,'01m7v03cezxfqyjds5e495vd90','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',118,12,10,'01m7v03cgezmee1zjqdyatbrby',NULL,NULL,NULL,1795128668639,1795128668639,1795128668686);
INSERT INTO jobs VALUES(34,'01m7v03enpsg5ka5bpy55y895e','agent:main:lead','main','turn','main',0,'done',0,0,1,1,0,'01m7v03enpsg5ka5bpy55y895g','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',118,12,10,'01m7v03envc12y9ngznrddked3',NULL,NULL,NULL,1795128670902,1795128670902,1795128670907);
INSERT INTO jobs VALUES(35,'01m7v03eqqxpxj1bwp6sm0ah37','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',137,12,10,'01m7v03er1z3r1taq3h3ty9wdj',NULL,NULL,NULL,1795128670967,1795128670968,1795128670977);
INSERT INTO jobs VALUES(36,'01m7v03er4xwt12rcxjqxb57s4','agent:main:lead','main','turn','internal_announce',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',149,12,10,'01m7v03esrqhkw06n596w2kpy0',NULL,NULL,NULL,1795128670980,1795128670980,1795128671032);
INSERT INTO jobs VALUES(37,'01m7v03erdjrefqq739h5s0h96','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',146,12,10,'01m7v03ernz2wwhk26a6hhqkb4',NULL,NULL,NULL,1795128670989,1795128670990,1795128670997);
INSERT INTO jobs VALUES(38,'01m7v03ergq1w5ahsyre17f4f3','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','expert','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',142,12,10,'01m7v03et4yym4evzensfqtat5',NULL,NULL,NULL,1795128670992,1795128670994,1795128671044);
INSERT INTO jobs VALUES(39,'01m7v03erqqtzkhxnzbr7sm29x','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',153,12,10,'01m7v03erzyprbwa9bacztvgrj',NULL,NULL,NULL,1795128670999,1795128671000,1795128671007);
INSERT INTO jobs VALUES(40,'01m7v03es5wwhv4vjhwazgdfmz','agent:main:lead','main','turn','internal_announce',3,'done',0,1,2,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',179,12,10,'01m7v03evbzq1tsx883g8q6k8j',NULL,NULL,NULL,1795128671013,1795128671032,1795128671083);
INSERT INTO jobs VALUES(41,'01m7v03es5wwhv4vjhwazgdfmv','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',162,12,10,'01m7v03etqwqbvzpbfw72v6f6f',NULL,NULL,NULL,1795128671013,1795128671014,1795128671063);
INSERT INTO jobs VALUES(42,'01m7v03evmz4q1ns5cz7mf5r49','agent:main:telegram:dm:8','main','turn','main',0,'done',0,0,1,1,0,'01m7v03evmz4q1ns5cz7mf5r4b','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',109,12,10,'01m7v03exb5020bw5gaxxf7a16',NULL,NULL,NULL,1795128671092,1795128671092,1795128671147);
INSERT INTO jobs VALUES(43,'01m7v03hqetepbq8adtrn0mxhy','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','turn','teammate',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',167,12,10,'01m7v03hqwjjdmzqkmbwyqq2c2',NULL,NULL,NULL,1795128674030,1795128674031,1795128674044);
INSERT INTO jobs VALUES(44,'01m7v03hqyk1ja0tqf789z0d2a','agent:main:lead','main','turn','internal_announce',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',162,12,10,'01m7v03hsmrk5p1yzv3bacwmke',NULL,NULL,NULL,1795128674046,1795128674046,1795128674100);
INSERT INTO jobs VALUES(45,'01m7v03kp5prtwvrajpbwh3yvk','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','expert','turn','teammate',3,'failed',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,NULL,0,0,0,'01m7v03kpjtkb0dkm1s9sd0z0f',NULL,'provider_failed','I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).',1795128676037,1795128676038,1795128676050);
INSERT INTO jobs VALUES(46,'01m7v03kpkxfycg1keb16rnrrh','agent:main:lead','main','turn','internal_announce',3,'done',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',172,12,10,'01m7v03kr4sz8xtwcd6ezymjzv',NULL,NULL,NULL,1795128676051,1795128676052,1795128676100);
INSERT INTO jobs VALUES(47,'01m7v03pm1rxgqdep49qp9g6m0','agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1','made','turn','teammate',3,'running',0,0,1,0,1,'01m7v03enxs02p3w3r5d5fqnpy','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128679041,1795128679042,NULL);
INSERT INTO jobs VALUES(48,'01m7v03sj3w1cxqmax77kw4f30','agent:main:second','main','turn','main',0,'done',0,0,1,1,0,'01m7v03sj3w1cxqmax77kw4f32','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',797,60,50,'01m7v03skcxd64rnytyffa2d44',NULL,NULL,NULL,1795128682051,1795128682051,1795128682092);
INSERT INTO jobs VALUES(49,'01m7v03sjm4mexnphw1c0q2xkc','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','expert','turn','teammate',3,'done',0,0,1,0,1,'01m7v03sj3w1cxqmax77kw4f32','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',130,12,10,'01m7v03sm7q3ejmt16n8jevyrz',NULL,NULL,NULL,1795128682068,1795128682068,1795128682119);
INSERT INTO jobs VALUES(50,'01m7v03sm9a33a17kdp0st414j','agent:main:second','main','turn','internal_announce',3,'done',0,0,1,0,1,'01m7v03sj3w1cxqmax77kw4f32','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',198,12,10,'01m7v03snvsmn07rkmpfjm05qt',NULL,NULL,NULL,1795128682121,1795128682122,1795128682171);
INSERT INTO jobs VALUES(51,'01m7v03wh6yat2hrm1pw8p1q6d','agent:main:second','main','turn','main',0,'done',0,0,1,1,0,'01m7v03wh6yat2hrm1pw8p1q6f','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',401,24,20,'01m7v03whwrgrseea25y3nvg61',NULL,NULL,NULL,1795128685094,1795128685094,1795128685116);
INSERT INTO jobs VALUES(52,'01m7v03whet6fz0cekbgsmrx8x','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','expert','turn','teammate',3,'done',0,0,1,0,1,'01m7v03wh6yat2hrm1pw8p1q6f','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',144,12,10,'01m7v03wk0aa56dvkn19dagxxe',NULL,NULL,NULL,1795128685102,1795128685103,1795128685151);
INSERT INTO jobs VALUES(53,'01m7v03whznsg81fgjq3693nma','agent:main:waits','main','turn','main',0,'running',0,0,1,1,0,'01m7v03whznsg81fgjq3693nmc','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685119,1795128685119,NULL);
INSERT INTO jobs VALUES(54,'01m7v03wj2gsswq7cxxssw8hte','agent:main:parent','main','turn','main',0,'done',0,0,1,1,0,'01m7v03wj2zzsyr9ye1kxzcn0q','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',253,24,20,'01m7v03wkw3mdh6fcef1h472wn',NULL,NULL,NULL,1795128685122,1795128685122,1795128685180);
INSERT INTO jobs VALUES(55,'01m7v03wj6xjm7tw64wr2gcbwn','agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62','expert','turn','subagent',3,'running',0,0,1,0,1,'01m7v03whznsg81fgjq3693nmc','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685126,1795128685126,NULL);
INSERT INTO jobs VALUES(56,'01m7v03wknvp6m92a671qtc5kf','agent:main:subagent:1586df04aabcb1b0e5844af08a707af4','main','turn','subagent',3,'running',0,0,1,0,1,'01m7v03wj2zzsyr9ye1kxzcn0q','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685173,1795128685173,NULL);
INSERT INTO jobs VALUES(57,'01m7v03wkz9gy2ncr8m7md20kr','agent:main:club','main','turn','main',0,'running',0,0,1,1,0,'01m7v03wkzxdybjy7wcx8abdm8','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685183,1795128685183,NULL);
INSERT INTO jobs VALUES(58,'01m7v03wm3ncqqd2f0qzf71bj4','agent:main:cut','main','turn','main',0,'running',0,0,1,1,0,'01m7v03wm3zewz57zpg1sycvyb','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685187,1795128685187,NULL);
INSERT INTO jobs VALUES(59,'01m7v03wm5r3nv1nzxbjzq8s26','agent:main:tool','main','turn','main',0,'running',0,0,1,1,0,'01m7v03wm5t9d321t3t0ryrd06','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128685189,1795128685189,NULL);
INSERT INTO jobs VALUES(60,'01m7v03wm7qyytqwzmghqn4dpr','agent:main:steered','main','turn','main',0,'steered',0,0,1,1,0,'01m7v03wm7vbz6zb61xrwq6npq','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',118,12,10,NULL,NULL,NULL,NULL,1795128685191,1795128685191,1795128688202);
INSERT INTO jobs VALUES(61,'01m7v03xkjp6ey96tw71823fsx','agent:main:steered','main','turn','main',0,'running',0,1,1,1,0,'01m7v03xkjx6p3qktnmawycd34','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128686194,1795128688202,NULL);
INSERT INTO jobs VALUES(62,'01m7v041gn4k0kwdtk8n314tsq','agent:main:held','main','turn','main',0,'running',0,0,1,1,0,'01m7v041gn5bhdsvh94dv1y9mq','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128690197,1795128690197,NULL);
INSERT INTO jobs VALUES(63,'01m7v043f9tagcntyr22jnpta4','agent:main:held','main','turn','main',0,'queued',1,1,2,1,0,'01m7v043f9tagcntyr22jnpta6',NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128692201,NULL,NULL);
INSERT INTO jobs VALUES(64,'01m7v043fnr1kfc89kx96f4k8n','agent:main:webhook:desk:dm:down','main','turn','main',2,'done',0,0,1,0,0,'01m7v043fnr1kfc89kx96f4k8q','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',119,12,10,'01m7v043fwxgx2p8bsze4na3kt',NULL,NULL,NULL,1795128692213,1795128692213,1795128692220);
INSERT INTO jobs VALUES(65,'01m7v044c60d7zdy7jtgb6m319','agent:main:telegram:dm:42','main','turn','main',0,'running',0,0,1,1,0,'01m7v044c6hgkp8a5jsxhgr4q5','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128693126,1795128693126,NULL);
INSERT INTO jobs VALUES(66,'01m7v044c8vs7bvznym6grw2ns','agent:main:telegram:dm:8','main','turn','main',0,'done',0,0,1,1,0,'01m7v044c8vs7bvznym6grw2nv','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',NULL,1,0,'lab/demo',257,24,20,'01m7v044e1e662wp9gvhbdpgq5',NULL,NULL,NULL,1795128693128,1795128693128,1795128693185);
INSERT INTO jobs VALUES(67,'01m7v044dx93n7x3njxmdnfpkf','agent:main:subagent:608cd6776b642e3598459cd7697cbb26','main','turn','subagent',3,'running',0,0,1,0,1,'01m7v044c8vs7bvznym6grw2nv','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1795128723327,1,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795128693181,1795128693181,NULL);
CREATE TABLE intents (
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  effect TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'unknown')),
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;
INSERT INTO intents VALUES('01m7v037b8mcgzxjdrdvahf0qs','call_29d990ae7c9c_0','todo','idempotent','done',1795128663451,1795128663452);
INSERT INTO intents VALUES('01m7v037b8mcgzxjdrdvahf0qs','call_6db1c6b77586_0','memory_store','idempotent','done',1795128663454,1795128663455);
INSERT INTO intents VALUES('01m7v037esyfxq093ecv9zj4r5','call_ed8c47ed90c4_0','cron_add','effect','done',1795128663563,1795128663564);
INSERT INTO intents VALUES('01m7v037ggc75s6ce1vjj07dv1','call_e131b23a4eab_0','read_file','pure','done',1795128663615,1795128663616);
INSERT INTO intents VALUES('01m7v03awrvexcqn1jrjceqq6g','call_66b1ddf60abb_0','sessions_spawn','idempotent','done',1795128667078,1795128667082);
INSERT INTO intents VALUES('01m7v03ayek0hjak6hta5g58sy','call_57da251c8964_0','sessions_spawn','idempotent','done',1795128667090,1795128667092);
INSERT INTO intents VALUES('01m7v03ayrsv9rwsfrjmhysj6b','call_4e2cd5822cc2_0','delegate_to_agent','idempotent','done',1795128667100,1795128667145);
INSERT INTO intents VALUES('01m7v03b03asskk3m8q6wdjb5f','call_f9abc6033a9a_0','sessions_spawn','idempotent','done',1795128667186,1795128667189);
INSERT INTO intents VALUES('01m7v03b6rvpwr19xsfnnkaf9h','call_7824a8eb514a_0','sessions_spawn','idempotent','done',1795128667357,1795128667359);
INSERT INTO intents VALUES('01m7v03sj3w1cxqmax77kw4f30','call_0efab1f6048b_0','TeammateSpawn','idempotent','done',1795128682067,1795128682075);
INSERT INTO intents VALUES('01m7v03sj3w1cxqmax77kw4f30','call_94d24ff82015_0','TeamCreate','idempotent','done',1795128682056,1795128682062);
INSERT INTO intents VALUES('01m7v03sj3w1cxqmax77kw4f30','call_a72f282adb42_0','SendMessage','idempotent','done',1795128682087,1795128682089);
INSERT INTO intents VALUES('01m7v03sj3w1cxqmax77kw4f30','call_c1579fed917b_0','TaskCreate','idempotent','done',1795128682080,1795128682084);
INSERT INTO intents VALUES('01m7v03wh6yat2hrm1pw8p1q6d','call_7a5a8e6feb00_0','TeamShutdown','idempotent','done',1795128685101,1795128685111);
INSERT INTO intents VALUES('01m7v03whznsg81fgjq3693nma','call_b364413fe2da_0','delegate_to_agent','idempotent','intent',1795128685126,NULL);
INSERT INTO intents VALUES('01m7v03wj2gsswq7cxxssw8hte','call_c15ca6d4f67c_0','sessions_spawn','idempotent','done',1795128685172,1795128685175);
INSERT INTO intents VALUES('01m7v03wm3ncqqd2f0qzf71bj4','call_e152ddce292f_0','todo','idempotent','done',1795128685194,1795128685194);
INSERT INTO intents VALUES('01m7v03wm5r3nv1nzxbjzq8s26','call_65cb373fc9b3_0','shell','effect','intent',1795128685240,NULL);
INSERT INTO intents VALUES('01m7v03wm7qyytqwzmghqn4dpr','call_524029b3fb84_0','todo','idempotent','done',1795128688202,1795128688202);
INSERT INTO intents VALUES('01m7v044c8vs7bvznym6grw2ns','call_e15d42540bf2_0','sessions_spawn','idempotent','done',1795128693180,1795128693183);
CREATE TABLE backlog (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  steers INTEGER NOT NULL,
  taken_by TEXT,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO backlog VALUES(1,'agent:main:steered','01m7v03wm7qyytqwzmghqn4dpq','01m7v03wm7qyytqwzmghqn4dpr',1,NULL,1795128688202);
CREATE TABLE ingress (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (channel, account, platform_id)
) STRICT, WITHOUT ROWID;
INSERT INTO ingress VALUES('telegram','main','42:51286708','01m7v03evqnvpmkhpvv97dfp97',1795128671095);
INSERT INTO ingress VALUES('telegram','main','42:51286922','01m7v044c5m1evcz94kb8tmrx9',1795128693126);
INSERT INTO ingress VALUES('telegram','main','7:51286706','01m7v03ekm08dv3w0snftqmeww',1795128670836);
INSERT INTO ingress VALUES('telegram','main','8:51286706','01m7v03ekn6ax89vb7z92xh60r',1795128670837);
INSERT INTO ingress VALUES('telegram','main','8:51286708','01m7v03evmkhsg0chdannkx18y',1795128671092);
INSERT INTO ingress VALUES('telegram','main','8:51286922','01m7v044c80h1epdspb7hx5983',1795128693128);
INSERT INTO ingress VALUES('webhook','bell','b1','01m7v03cez45dd7azvw1ced8w8',1795128668639);
INSERT INTO ingress VALUES('webhook','desk','d1','01m7v03bdvdhwjtqjngbbrpnn4',1795128667580);
INSERT INTO ingress VALUES('webhook','desk','d2','01m7v03ceq9eefk91sqx093q71',1795128668631);
INSERT INTO ingress VALUES('webhook','desk','d3','01m7v043fn3p64fycz4apc6xne',1795128692213);
CREATE TABLE traces (
  trace_id TEXT PRIMARY KEY,
  automatic_turns INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO traces VALUES('01m7v03awrxwmw9ms3w61k30s8',1,1795128667132);
INSERT INTO traces VALUES('01m7v03ayeyc3hzcvbpdarf5c0',1,1795128667139);
INSERT INTO traces VALUES('01m7v03b6ry8q18qm75t56akch',1,1795128667410);
INSERT INTO traces VALUES('01m7v03enxs02p3w3r5d5fqnpy',13,1795128670967);
INSERT INTO traces VALUES('01m7v03sj3w1cxqmax77kw4f32',1,1795128682121);
INSERT INTO traces VALUES('01m7v03wh6yat2hrm1pw8p1q6f',1,1795128685102);
CREATE TABLE outbox (
  id TEXT PRIMARY KEY,
  part_key TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  channel TEXT NOT NULL,
  address_json TEXT NOT NULL,
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  node TEXT,
  lease_until INTEGER,
  next_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  platform_id TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, account TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;
INSERT INTO outbox VALUES('01m7v03bfay841kxp3rndb5ex6','01m7v03bdwtdsfyeqmjt793hkc-0','agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkc',0,'webhook','{"channel":"webhook","account":"desk","peer":"cust"}','Noted: first question','sent',1,NULL,NULL,1795128667628,1795129567626,'p1',NULL,1795128667626,1795128667628,'desk');
INSERT INTO outbox VALUES('01m7v03cewt0m1sy3s5fhyantc','01m7v03ceq9eefk91sqx093q72-0','agent:main:webhook:desk:dm:refused','01m7v03ceq9eefk91sqx093q72',0,'webhook','{"channel":"webhook","account":"desk","peer":"refused"}','Noted: a question whose reply is refused','failed',1,NULL,NULL,1795128668639,1795129568636,NULL,'the platform answered 400 Bad Request',1795128668636,1795128668639,'desk');
INSERT INTO outbox VALUES('01m7v03cgezmee1zjqdyatbrbz','01m7v03cezjaanmpkj5na3xwd0-0','agent:main:webhook:bell:dm:cust','01m7v03cezjaanmpkj5na3xwd0',0,'webhook','{"channel":"webhook","account":"bell","peer":"cust"}','Noted: a question whose reply is cut','unknown',1,NULL,NULL,1795128668689,1795129568686,NULL,'the connection broke before an answer came: connection closed before message completed',1795128668686,1795128668689,'bell');
INSERT INTO outbox VALUES('01m7v03ekmxrgebcajk2esd06q','answer-01m7v03ekm08dv3w0snftqmeww-0','agent:main:telegram:dm:7','01m7v03ekm08dv3w0snftqmeww',0,'telegram','{"channel":"telegram","account":"main","peer":"7"}',replace('I do not know you yet. Show this code to the owner of this assistant: 34BU56W6\nIt is good for an hour: polyclaw pairing approve 34BU56W6','\n',char(10)),'sent',1,NULL,NULL,1795128670840,1795129570836,'3',NULL,1795128670836,1795128670840,'main');
INSERT INTO outbox VALUES('01m7v03eknppzrg10r97y0z346','answer-01m7v03ekn6ax89vb7z92xh60r-0','agent:main:telegram:dm:8','01m7v03ekn6ax89vb7z92xh60r',0,'telegram','{"channel":"telegram","account":"main","peer":"8"}',replace('I do not know you yet. Show this code to the owner of this assistant: FX35NQTN\nIt is good for an hour: polyclaw pairing approve FX35NQTN','\n',char(10)),'sent',1,NULL,NULL,1795128670839,1795129570837,'2',NULL,1795128670837,1795128670839,'main');
INSERT INTO outbox VALUES('01m7v03engvwy8egkq6fq0zzyj','01m7v03engvwy8egkq6fq0zzyh-0','agent:main:main','01m7v03engvwy8egkq6fq0zzyh',0,'telegram','{"channel":"telegram","account":"main","peer":"8"}','You are let in: write to me now.','sent',1,NULL,NULL,1795128670899,1795129570896,'4',NULL,1795128670896,1795128670899,'main');
INSERT INTO outbox VALUES('01m7v03evqpaq4x49wvafg1apf','answer-01m7v03evqnvpmkhpvv97dfp97-0','agent:main:telegram:dm:42','01m7v03evqnvpmkhpvv97dfp97',0,'telegram','{"channel":"telegram","account":"main","peer":"42"}','Nothing was said here yet.','sent',1,NULL,NULL,1795128671096,1795129571095,'5',NULL,1795128671095,1795128671096,'main');
INSERT INTO outbox VALUES('01m7v03exb5020bw5gaxxf7a17','01m7v03evmz4q1ns5cz7mf5r49-0','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r49',0,'telegram','{"channel":"telegram","account":"main","peer":"8"}','Noted: hello from a paired person','sent',1,NULL,NULL,1795128671151,1795129571147,'6',NULL,1795128671147,1795128671151,'main');
INSERT INTO outbox VALUES('01m7v043fwyny6pvrj1n287av5','01m7v043fnr1kfc89kx96f4k8n-0','agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8n',0,'webhook','{"channel":"webhook","account":"desk","peer":"down"}','Noted: a question whose reply waits','pending',3,NULL,NULL,1795128704252,1795129592220,NULL,'the platform answered 503 Service Unavailable',1795128692220,1795128696252,'desk');
INSERT INTO outbox VALUES('01m7v044e1yrrntfzr8gt4hcyw','01m7v044c8vs7bvznym6grw2ns-0','agent:main:telegram:dm:8','01m7v044c8vs7bvznym6grw2ns',0,'telegram','{"channel":"telegram","account":"main","peer":"8"}','started','sent',1,NULL,NULL,1795128693189,1795129593185,'7',NULL,1795128693185,1795128693189,'main');
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_json TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired')),
  reason TEXT,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  decided_at INTEGER, fingerprint TEXT NOT NULL DEFAULT '', origin_json TEXT, question TEXT NOT NULL DEFAULT '', decided_by TEXT,
  UNIQUE (turn_id, call_id)
) STRICT, WITHOUT ROWID;
INSERT INTO approvals VALUES('01m7v03b78xddk868ygtefe4hr','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6n','call_44d5da36239c_0','write_file','{"path":"a.txt","content":"hello"}','denied','not today',1795130467368,1795128667368,1795128667573,'dbf91d4591ccbb334ba85403357ecb2bc9438aaade16062bba3202fb2820e412',NULL,'write_file {"path":"a.txt","content":"hello"}','owner');
INSERT INTO approvals VALUES('01m7v03bdvck17br7and1pz42j','agent:ops:waiting','01m7v03bdpn063ckft7zanythd','call_8df6414c9fe9_0','write_file','{"path":"b.txt","content":"hello"}','pending',NULL,1795130467579,1795128667579,NULL,'fbedc7cdab7dd533bfe99cf79d3a2ace362a2a2f7cc757dcdf4960ebfb12b939',NULL,'write_file {"path":"b.txt","content":"hello"}',NULL);
CREATE TABLE usage (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  created_at INTEGER NOT NULL
, cost_nanos INTEGER) STRICT;
INSERT INTO usage VALUES(1,'agent:main:main','01m7v037b8mcgzxjdrdvahf0qs','main','lab/demo',124,12,10,1795128663451,148000);
INSERT INTO usage VALUES(2,'agent:main:main','01m7v037b8mcgzxjdrdvahf0qs','main','lab/demo',134,12,10,1795128663454,158000);
INSERT INTO usage VALUES(3,'agent:main:main','01m7v037b8mcgzxjdrdvahf0qs','main','lab/demo',144,12,10,1795128663456,168000);
INSERT INTO usage VALUES(4,'agent:main:main','01m7v037d2xfq995mv8mt1nxcf','main','lab/demo',145,12,10,1795128663462,169000);
INSERT INTO usage VALUES(5,'agent:main:main','01m7v037d8r3rg3w0k5s3xgxyr','main','lab/demo',150,12,10,1795128663511,174000);
INSERT INTO usage VALUES(6,'agent:main:main','01m7v037esyfxq093ecv9zj4r5','main','lab/demo',163,12,10,1795128663562,187000);
INSERT INTO usage VALUES(7,'agent:main:main','01m7v037esyfxq093ecv9zj4r5','main','lab/demo',174,12,10,1795128663566,198000);
INSERT INTO usage VALUES(8,'agent:main:main','01m7v037ggc75s6ce1vjj07dv1','main','lab/demo',181,12,10,1795128663615,205000);
INSERT INTO usage VALUES(9,'agent:main:main','01m7v037ggc75s6ce1vjj07dv1','main','lab/demo',189,12,10,1795128663618,213000);
INSERT INTO usage VALUES(10,'agent:main:folded','01m7v037j7zycsknrwxz7h2ts3','main','lab/demo',117,12,10,1795128663670,141000);
INSERT INTO usage VALUES(11,'agent:main:folded','01m7v037krwbbsr9b3memafx3e','main','lab/demo',119,12,10,1795128663718,143000);
INSERT INTO usage VALUES(12,'agent:main:folded','01m7v037n8zzj109hq7ehxy8fn','main','lab/demo',123,12,10,1795128663772,147000);
INSERT INTO usage VALUES(13,'agent:main:folded','01m7v037pywqjydkrqxq69dvjz','main','lab/demo',127,12,10,1795128663822,151000);
INSERT INTO usage VALUES(14,'agent:main:folded','01m7v037rgt4fz4qvxcs6ptx91','main','lab/demo',131,12,10,1795128663870,155000);
INSERT INTO usage VALUES(15,'agent:main:folded','01m7v037t0nbj97fg2bwvpdy22','main','lab/demo',136,12,10,1795128663918,160000);
INSERT INTO usage VALUES(16,'agent:main:folded','01m7v037vgygrh36wm91zv9k7f','main','lab/demo',127,12,10,1795128663923,151000);
INSERT INTO usage VALUES(17,'agent:main:folded','01m7v037vgygrh36wm91zv9k7f','main','lab/demo',120,12,10,1795128663927,144000);
INSERT INTO usage VALUES(18,'agent:main:folded','01m7v03asb53d0ke5ptyy27wtf','main','lab/demo',117,12,10,1795128666928,141000);
INSERT INTO usage VALUES(19,'agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty','01m7v03askfr4w05151wn81e75','made','lab/demo',107,12,10,1795128666977,131000);
INSERT INTO usage VALUES(20,'agent:main:folded','01m7v03av7enh89t3h2fyhx6s2','main','lab/demo',109,12,10,1795128667030,133000);
INSERT INTO usage VALUES(21,'agent:main:family','01m7v03awrvexcqn1jrjceqq6g','main','lab/demo',122,12,10,1795128667078,146000);
INSERT INTO usage VALUES(22,'agent:main:family','01m7v03awrvexcqn1jrjceqq6g','main','lab/demo',136,12,10,1795128667084,160000);
INSERT INTO usage VALUES(23,'agent:main:chain','01m7v03ayek0hjak6hta5g58sy','main','lab/demo',126,12,10,1795128667089,150000);
INSERT INTO usage VALUES(24,'agent:main:chain','01m7v03ayek0hjak6hta5g58sy','main','lab/demo',144,12,10,1795128667094,168000);
INSERT INTO usage VALUES(25,'agent:main:family','01m7v03ayrsv9rwsfrjmhysj6b','main','lab/demo',142,12,10,1795128667099,166000);
INSERT INTO usage VALUES(26,'agent:main:subagent:a865d4218234ea07dee68c5200cb1199','01m7v03ay8s41a05ts6x0gzknm','main','lab/demo',120,12,10,1795128667131,144000);
INSERT INTO usage VALUES(27,'agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','01m7v03aykddsbyyexab5tb59w','main','lab/demo',122,12,10,1795128667139,146000);
INSERT INTO usage VALUES(28,'agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','01m7v03aywhnnp1vxhh6x03wh6','expert','lab/demo',112,12,10,1795128667144,136000);
INSERT INTO usage VALUES(29,'agent:main:family','01m7v03ayrsv9rwsfrjmhysj6b','main','lab/demo',162,12,10,1795128667147,186000);
INSERT INTO usage VALUES(30,'agent:main:chain','01m7v03b03asskk3m8q6wdjb5f','main','lab/demo',165,12,10,1795128667185,189000);
INSERT INTO usage VALUES(31,'agent:main:chain','01m7v03b03asskk3m8q6wdjb5f','main','lab/demo',176,12,10,1795128667191,200000);
INSERT INTO usage VALUES(32,'agent:main:family','01m7v03azwyb34a3fvbp7qj9js','main','lab/demo',183,12,10,1795128667193,207000);
INSERT INTO usage VALUES(33,'agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','01m7v03b1kzr615gztfc4wqbpa','main','lab/demo',119,12,10,1795128667234,143000);
INSERT INTO usage VALUES(34,'agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9h','main','lab/demo',120,12,10,1795128667357,144000);
INSERT INTO usage VALUES(35,'agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9h','main','lab/demo',133,12,10,1795128667361,157000);
INSERT INTO usage VALUES(36,'agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6n','ops','lab/demo',112,12,10,1795128667368,136000);
INSERT INTO usage VALUES(37,'agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','01m7v03b6ymahjgtqgw93xnk92','main','lab/demo',112,12,10,1795128667410,136000);
INSERT INTO usage VALUES(38,'agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6n','ops','lab/demo',121,12,10,1795128667575,145000);
INSERT INTO usage VALUES(39,'agent:ops:waiting','01m7v03bdpn063ckft7zanythd','ops','lab/demo',112,12,10,1795128667579,136000);
INSERT INTO usage VALUES(40,'agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkc','main','lab/demo',117,12,10,1795128667626,141000);
INSERT INTO usage VALUES(41,'agent:main:webhook:desk:dm:refused','01m7v03ceq9eefk91sqx093q72','main','lab/demo',111,12,10,1795128668636,135000);
INSERT INTO usage VALUES(42,'agent:main:webhook:bell:dm:cust','01m7v03cezjaanmpkj5na3xwd0','main','lab/demo',118,12,10,1795128668686,142000);
INSERT INTO usage VALUES(43,'agent:main:lead','01m7v03enpsg5ka5bpy55y895e','main','lab/demo',118,12,10,1795128670907,142000);
INSERT INTO usage VALUES(44,'agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03eqqxpxj1bwp6sm0ah37','ops','lab/demo',137,12,10,1795128670977,161000);
INSERT INTO usage VALUES(45,'agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03erdjrefqq739h5s0h96','ops','lab/demo',146,12,10,1795128670997,170000);
INSERT INTO usage VALUES(46,'agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03erqqtzkhxnzbr7sm29x','ops','lab/demo',153,12,10,1795128671007,177000);
INSERT INTO usage VALUES(47,'agent:main:lead','01m7v03er4xwt12rcxjqxb57s4','main','lab/demo',149,12,10,1795128671032,173000);
INSERT INTO usage VALUES(48,'agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03ergq1w5ahsyre17f4f3','expert','lab/demo',142,12,10,1795128671044,166000);
INSERT INTO usage VALUES(49,'agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03es5wwhv4vjhwazgdfmv','ops','lab/demo',162,12,10,1795128671063,186000);
INSERT INTO usage VALUES(50,'agent:main:lead','01m7v03es5wwhv4vjhwazgdfmz','main','lab/demo',179,12,10,1795128671083,203000);
INSERT INTO usage VALUES(51,'agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r49','main','lab/demo',109,12,10,1795128671147,133000);
INSERT INTO usage VALUES(52,'agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03hqetepbq8adtrn0mxhy','ops','lab/demo',167,12,10,1795128674044,191000);
INSERT INTO usage VALUES(53,'agent:main:lead','01m7v03hqyk1ja0tqf789z0d2a','main','lab/demo',162,12,10,1795128674100,186000);
INSERT INTO usage VALUES(54,'agent:main:lead','01m7v03kpkxfycg1keb16rnrrh','main','lab/demo',172,12,10,1795128676100,196000);
INSERT INTO usage VALUES(55,'agent:main:second','01m7v03sj3w1cxqmax77kw4f30','main','lab/demo',130,12,10,1795128682056,154000);
INSERT INTO usage VALUES(56,'agent:main:second','01m7v03sj3w1cxqmax77kw4f30','main','lab/demo',150,12,10,1795128682067,174000);
INSERT INTO usage VALUES(57,'agent:main:second','01m7v03sj3w1cxqmax77kw4f30','main','lab/demo',163,12,10,1795128682080,187000);
INSERT INTO usage VALUES(58,'agent:main:second','01m7v03sj3w1cxqmax77kw4f30','main','lab/demo',171,12,10,1795128682086,195000);
INSERT INTO usage VALUES(59,'agent:main:second','01m7v03sj3w1cxqmax77kw4f30','main','lab/demo',183,12,10,1795128682092,207000);
INSERT INTO usage VALUES(60,'agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjm4mexnphw1c0q2xkc','expert','lab/demo',130,12,10,1795128682119,154000);
INSERT INTO usage VALUES(61,'agent:main:second','01m7v03sm9a33a17kdp0st414j','main','lab/demo',198,12,10,1795128682171,222000);
INSERT INTO usage VALUES(62,'agent:main:second','01m7v03wh6yat2hrm1pw8p1q6d','main','lab/demo',195,12,10,1795128685101,219000);
INSERT INTO usage VALUES(63,'agent:main:second','01m7v03wh6yat2hrm1pw8p1q6d','main','lab/demo',206,12,10,1795128685116,230000);
INSERT INTO usage VALUES(64,'agent:main:waits','01m7v03whznsg81fgjq3693nma','main','lab/demo',121,12,10,1795128685126,145000);
INSERT INTO usage VALUES(65,'agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03whet6fz0cekbgsmrx8x','expert','lab/demo',144,12,10,1795128685151,168000);
INSERT INTO usage VALUES(66,'agent:main:parent','01m7v03wj2gsswq7cxxssw8hte','main','lab/demo',120,12,10,1795128685171,144000);
INSERT INTO usage VALUES(67,'agent:main:parent','01m7v03wj2gsswq7cxxssw8hte','main','lab/demo',133,12,10,1795128685180,157000);
INSERT INTO usage VALUES(68,'agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj4','main','lab/demo',119,12,10,1795128685193,143000);
INSERT INTO usage VALUES(69,'agent:main:tool','01m7v03wm5r3nv1nzxbjzq8s26','main','lab/demo',117,12,10,1795128685240,141000);
INSERT INTO usage VALUES(70,'agent:main:steered','01m7v03wm7qyytqwzmghqn4dpr','main','lab/demo',118,12,10,1795128688201,142000);
INSERT INTO usage VALUES(71,'agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8n','main','lab/demo',119,12,10,1795128692220,143000);
INSERT INTO usage VALUES(72,'agent:main:telegram:dm:8','01m7v044c8vs7bvznym6grw2ns','main','lab/demo',122,12,10,1795128693179,146000);
INSERT INTO usage VALUES(73,'agent:main:telegram:dm:8','01m7v044c8vs7bvznym6grw2ns','main','lab/demo',135,12,10,1795128693185,159000);
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  session_key TEXT,
  turn_id TEXT,
  agent_id TEXT,
  trace_id TEXT,
  data_json TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO events VALUES(1,'memory.flushed','agent:main:folded','01m7v037vgygrh36wm91zv9k7f','main','01m7v037vgygrh36wm91zv9k7h','{"memories":0}',1795128663923);
INSERT INTO events VALUES(2,'session.compacted','agent:main:folded','01m7v037vgygrh36wm91zv9k7f','main','01m7v037vgygrh36wm91zv9k7h','{"through_ticket":11}',1795128663927);
INSERT INTO events VALUES(3,'session.renewed','agent:main:folded',NULL,NULL,NULL,'{"session_id":"01m7v03av6ev81fvrrbntykjnh"}',1795128666982);
INSERT INTO events VALUES(4,'gate.kept','agent:main:subagent:a865d4218234ea07dee68c5200cb1199','01m7v03ay8s41a05ts6x0gzknm','main','01m7v03awrxwmw9ms3w61k30s8','{"kept":"internal","channel":"internal"}',1795128667131);
INSERT INTO events VALUES(5,'message.waiting','agent:main:family','01m7v03azwyb34a3fvbp7qj9js','main',NULL,'{"waiting":1,"steers":false}',1795128667132);
INSERT INTO events VALUES(6,'announce.told','agent:main:family',NULL,'main','01m7v03awrxwmw9ms3w61k30s8','{"run_id":"01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0","status":"ok","from":"agent:main:subagent:a865d4218234ea07dee68c5200cb1199"}',1795128667132);
INSERT INTO events VALUES(7,'gate.kept','agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','01m7v03aykddsbyyexab5tb59w','main','01m7v03ayeyc3hzcvbpdarf5c0','{"kept":"internal","channel":"internal"}',1795128667139);
INSERT INTO events VALUES(8,'announce.told','agent:main:chain',NULL,'main','01m7v03ayeyc3hzcvbpdarf5c0','{"run_id":"01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0","status":"ok","from":"agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f"}',1795128667139);
INSERT INTO events VALUES(9,'gate.kept','agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','01m7v03aywhnnp1vxhh6x03wh6','expert','01m7v03ayrsv9rwsfrjmhysj6d','{"kept":"internal","channel":"internal"}',1795128667144);
INSERT INTO events VALUES(10,'announce.told','agent:main:family',NULL,'expert','01m7v03ayrsv9rwsfrjmhysj6d','{"run_id":"01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0","status":"ok","from":"agent:expert:delegate:c7da7d6be774875b8141b92e353129f0"}',1795128667147);
INSERT INTO events VALUES(11,'gate.kept','agent:main:chain','01m7v03b03asskk3m8q6wdjb5f','main','01m7v03ayeyc3hzcvbpdarf5c0','{"kept":"internal","channel":"internal"}',1795128667191);
INSERT INTO events VALUES(12,'gate.kept','agent:main:family','01m7v03azwyb34a3fvbp7qj9js','main','01m7v03awrxwmw9ms3w61k30s8','{"kept":"internal","channel":"internal"}',1795128667193);
INSERT INTO events VALUES(13,'gate.kept','agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','01m7v03b1kzr615gztfc4wqbpa','main','01m7v03ayeyc3hzcvbpdarf5c0','{"kept":"internal","channel":"internal"}',1795128667234);
INSERT INTO events VALUES(14,'message.waiting','agent:main:chain','01m7v03b32dz25thpkma7bh1vw','main',NULL,'{"waiting":1,"steers":false}',1795128667234);
INSERT INTO events VALUES(15,'announce.held','agent:main:chain',NULL,'main','01m7v03ayeyc3hzcvbpdarf5c0','{"run_id":"01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0","code":"automatic_budget_spent"}',1795128667234);
INSERT INTO events VALUES(16,'approval.asked','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6n','ops','01m7v03b73ymtnhsbyeqvdjx6q','{"approval_id":"01m7v03b78xddk868ygtefe4hr","tool":"write_file"}',1795128667368);
INSERT INTO events VALUES(17,'gate.kept','agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','01m7v03b6ymahjgtqgw93xnk92','main','01m7v03b6ry8q18qm75t56akch','{"kept":"internal","channel":"internal"}',1795128667410);
INSERT INTO events VALUES(18,'announce.told','agent:main:fish',NULL,'main','01m7v03b6ry8q18qm75t56akch','{"run_id":"01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0","status":"ok","from":"agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77"}',1795128667410);
INSERT INTO events VALUES(19,'turn.failed','agent:main:fish','01m7v03b8jm51wbfdb27ayxfsv','main','01m7v03b6ry8q18qm75t56akch','{"code":"provider_failed"}',1795128667459);
INSERT INTO events VALUES(20,'gate.kept','agent:main:fish','01m7v03b8jm51wbfdb27ayxfsv','main','01m7v03b6ry8q18qm75t56akch','{"kept":"internal","channel":"internal"}',1795128667459);
INSERT INTO events VALUES(21,'approval.decided','agent:ops:decided','01m7v03b73ymtnhsbyeqvdjx6n',NULL,NULL,'{"approval_id":"01m7v03b78xddk868ygtefe4hr","tool":"write_file","state":"denied","by":"owner"}',1795128667573);
INSERT INTO events VALUES(22,'approval.asked','agent:ops:waiting','01m7v03bdpn063ckft7zanythd','ops','01m7v03bdpn063ckft7zanythf','{"approval_id":"01m7v03bdvck17br7and1pz42j","tool":"write_file"}',1795128667579);
INSERT INTO events VALUES(23,'delivery.queued','agent:main:webhook:desk:dm:cust','01m7v03bdwtdsfyeqmjt793hkc','main','01m7v03bdwtdsfyeqmjt793hke','{"channel":"webhook"}',1795128667626);
INSERT INTO events VALUES(24,'delivery.queued','agent:main:webhook:desk:dm:refused','01m7v03ceq9eefk91sqx093q72','main','01m7v03ceqpvw66eayeh3eym73','{"channel":"webhook"}',1795128668636);
INSERT INTO events VALUES(25,'delivery.failed','agent:main:webhook:desk:dm:refused','01m7v03ceq9eefk91sqx093q72',NULL,NULL,'{"outbox_id":"01m7v03cewt0m1sy3s5fhyantc","channel":"webhook","reason":"the platform answered 400 Bad Request"}',1795128668639);
INSERT INTO events VALUES(26,'delivery.queued','agent:main:webhook:bell:dm:cust','01m7v03cezjaanmpkj5na3xwd0','main','01m7v03cezxfqyjds5e495vd90','{"channel":"webhook"}',1795128668686);
INSERT INTO events VALUES(27,'delivery.unknown','agent:main:webhook:bell:dm:cust','01m7v03cezjaanmpkj5na3xwd0',NULL,NULL,'{"outbox_id":"01m7v03cgezmee1zjqdyatbrbz","channel":"webhook","reason":"the connection broke before an answer came: connection closed before message completed"}',1795128668689);
INSERT INTO events VALUES(28,'pairing.asked',NULL,NULL,NULL,NULL,'{"channel":"telegram","account":"main","sender":"7"}',1795128670836);
INSERT INTO events VALUES(29,'pairing.asked',NULL,NULL,NULL,NULL,'{"channel":"telegram","account":"main","sender":"8"}',1795128670837);
INSERT INTO events VALUES(30,'pairing.approved',NULL,NULL,NULL,NULL,'{"channel":"telegram","account":"main","sender":"8"}',1795128670896);
INSERT INTO events VALUES(31,'team.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","change":"created"}',1795128670934);
INSERT INTO events VALUES(32,'team.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","change":"joined","member":"ann","session_key":"agent:ops:teammate:01m7v03eprwy0p4998x3yss5by"}',1795128670943);
INSERT INTO events VALUES(33,'team.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","change":"joined","member":"bob","session_key":"agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q"}',1795128670954);
INSERT INTO events VALUES(34,'team.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","change":"joined","member":"carl","session_key":"agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1"}',1795128670963);
INSERT INTO events VALUES(35,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":1,"change":"created","by":"operator","state":"pending","subject":"Draw the header"}',1795128670967);
INSERT INTO events VALUES(36,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03enx0sh53n4sd1cmd5t1-1-1","from":"team","to":"ann","type":"task","summary":"Task #1 is free: Draw the header. Claim it with..."}',1795128670967);
INSERT INTO events VALUES(37,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":2,"change":"created","by":"operator","state":"pending","subject":"Put it on the page"}',1795128670974);
INSERT INTO events VALUES(38,'gate.kept','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03eqqxpxj1bwp6sm0ah37','ops','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128670977);
INSERT INTO events VALUES(39,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03eqqxpxj1bwp6sm0ah37","from":"ann","to":"lead","type":"idle","summary":"ann is idle: available."}',1795128670980);
INSERT INTO events VALUES(40,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":3,"change":"created","by":"operator","state":"pending","subject":"Publish"}',1795128670982);
INSERT INTO events VALUES(41,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":4,"change":"created","by":"operator","state":"pending","subject":"Write the text"}',1795128670989);
INSERT INTO events VALUES(42,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03enx0sh53n4sd1cmd5t1-4-4","from":"team","to":"ann","type":"task","summary":"Task #4 is free: Write the text. Claim it with..."}',1795128670989);
INSERT INTO events VALUES(43,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":5,"change":"created","by":"operator","state":"pending","subject":"Impossible"}',1795128670992);
INSERT INTO events VALUES(44,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03enx0sh53n4sd1cmd5t1-5-5","from":"team","to":"bob","type":"task","summary":"Task #5 is free: Impossible. Claim it with TaskClaim if..."}',1795128670992);
INSERT INTO events VALUES(45,'gate.kept','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03erdjrefqq739h5s0h96','ops','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128670997);
INSERT INTO events VALUES(46,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":6,"change":"created","by":"operator","state":"pending","subject":"Under way"}',1795128670999);
INSERT INTO events VALUES(47,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03enx0sh53n4sd1cmd5t1-6-6","from":"team","to":"ann","type":"task","summary":"Task #6 is free: Under way. Claim it with TaskClaim..."}',1795128670999);
INSERT INTO events VALUES(48,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":1,"change":"claimed","by":"ann","state":"claimed","subject":"Draw the header"}',1795128671006);
INSERT INTO events VALUES(49,'gate.kept','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03erqqtzkhxnzbr7sm29x','ops','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128671007);
INSERT INTO events VALUES(50,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03erqqtzkhxnzbr7sm29x","from":"ann","to":"lead","type":"idle","summary":"ann is idle: waiting. It holds a task, and goes..."}',1795128671011);
INSERT INTO events VALUES(51,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":1,"change":"completed","by":"ann","state":"completed","subject":"Draw the header"}',1795128671013);
INSERT INTO events VALUES(52,'message.waiting','agent:main:lead','01m7v03es5wwhv4vjhwazgdfmz','ops',NULL,'{"waiting":1,"steers":false}',1795128671013);
INSERT INTO events VALUES(53,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03enx0sh53n4sd1cmd5t1-8-2","from":"team","to":"ann","type":"task","summary":"Task #2 is free: Put it on the page. Claim..."}',1795128671013);
INSERT INTO events VALUES(54,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":2,"change":"claimed","by":"ann","state":"claimed","subject":"Put it on the page"}',1795128671019);
INSERT INTO events VALUES(55,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":5,"change":"claimed","by":"carl","state":"claimed","subject":"Impossible"}',1795128671021);
INSERT INTO events VALUES(56,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":5,"change":"failed","by":"carl","state":"failed","subject":"Impossible"}',1795128671024);
INSERT INTO events VALUES(57,'message.waiting','agent:main:lead','01m7v03es5wwhv4vjhwazgdfmz','made',NULL,'{"waiting":2,"steers":false}',1795128671024);
INSERT INTO events VALUES(58,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":6,"change":"claimed","by":"carl","state":"claimed","subject":"Under way"}',1795128671026);
INSERT INTO events VALUES(59,'task.changed','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","task_id":6,"change":"started","by":"carl","state":"in_progress","subject":"Under way"}',1795128671027);
INSERT INTO events VALUES(60,'gate.kept','agent:main:lead','01m7v03er4xwt12rcxjqxb57s4','main','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128671032);
INSERT INTO events VALUES(61,'gate.kept','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03ergq1w5ahsyre17f4f3','expert','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128671044);
INSERT INTO events VALUES(62,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03ergq1w5ahsyre17f4f3","from":"bob","to":"lead","type":"idle","summary":"bob is idle: available."}',1795128671045);
INSERT INTO events VALUES(63,'gate.kept','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03es5wwhv4vjhwazgdfmv','ops','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128671063);
INSERT INTO events VALUES(64,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03es5wwhv4vjhwazgdfmv","from":"ann","to":"lead","type":"idle","summary":"ann is idle: waiting. It holds a task, and goes..."}',1795128671065);
INSERT INTO events VALUES(65,'gate.kept','agent:main:lead','01m7v03es5wwhv4vjhwazgdfmz','main','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128671083);
INSERT INTO events VALUES(66,'delivery.queued','agent:main:telegram:dm:8','01m7v03evmz4q1ns5cz7mf5r49','main','01m7v03evmz4q1ns5cz7mf5r4b','{"channel":"telegram"}',1795128671147);
INSERT INTO events VALUES(67,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03hqdc2gn0wmbz8rdng7c-ann","from":"operator","to":"ann","type":"message","summary":"Please read this."}',1795128674030);
INSERT INTO events VALUES(68,'gate.kept','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','01m7v03hqetepbq8adtrn0mxhy','ops','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128674044);
INSERT INTO events VALUES(69,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03hqetepbq8adtrn0mxhy","from":"ann","to":"lead","type":"idle","summary":"ann is idle: waiting. It holds a task, and goes..."}',1795128674046);
INSERT INTO events VALUES(70,'gate.kept','agent:main:lead','01m7v03hqyk1ja0tqf789z0d2a','main','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128674100);
INSERT INTO events VALUES(71,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03kp5prtwvrajpbwh3yvg-bob","from":"operator","to":"bob","type":"message","summary":"This fails."}',1795128676038);
INSERT INTO events VALUES(72,'turn.failed','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03kp5prtwvrajpbwh3yvk','expert','01m7v03enxs02p3w3r5d5fqnpy','{"code":"provider_failed"}',1795128676050);
INSERT INTO events VALUES(73,'gate.kept','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','01m7v03kp5prtwvrajpbwh3yvk','expert','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128676050);
INSERT INTO events VALUES(74,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"idle-01m7v03kp5prtwvrajpbwh3yvk","from":"bob","to":"lead","type":"idle","summary":"bob is idle: failed. (provider_failed) It is tried again while..."}',1795128676051);
INSERT INTO events VALUES(75,'gate.kept','agent:main:lead','01m7v03kpkxfycg1keb16rnrrh','main','01m7v03enxs02p3w3r5d5fqnpy','{"kept":"internal","channel":"internal"}',1795128676100);
INSERT INTO events VALUES(76,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03pm1nyjacnsfqvz3yz3n-carl","from":"operator","to":"carl","type":"message","summary":"This hangs."}',1795128679041);
INSERT INTO events VALUES(77,'mail.sent','agent:main:lead',NULL,'main','01m7v03enxs02p3w3r5d5fqnpy','{"team":"site","message_id":"01m7v03sj05cbp0qn8p707nr8z-carl","from":"operator","to":"carl","type":"message","summary":"This is unread."}',1795128682049);
INSERT INTO events VALUES(78,'team.changed','agent:main:second',NULL,'main','01m7v03sj3w1cxqmax77kw4f32','{"team":"dock","change":"created"}',1795128682061);
INSERT INTO events VALUES(79,'team.changed','agent:main:second',NULL,'main','01m7v03sj3w1cxqmax77kw4f32','{"team":"dock","change":"joined","member":"dora","session_key":"agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0"}',1795128682075);
INSERT INTO events VALUES(80,'task.changed','agent:main:second',NULL,'main','01m7v03sj3w1cxqmax77kw4f32','{"team":"dock","task_id":1,"change":"created","by":"lead","state":"pending","subject":"Sweep"}',1795128682083);
INSERT INTO events VALUES(81,'mail.sent','agent:main:second',NULL,'main','01m7v03sj3w1cxqmax77kw4f32','{"team":"dock","message_id":"01m7v03sj3w1cxqmax77kw4f30-call_a72f282adb42_0-dora","from":"lead","to":"dora","type":"message","summary":"hello"}',1795128682088);
INSERT INTO events VALUES(82,'gate.kept','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03sjm4mexnphw1c0q2xkc','expert','01m7v03sj3w1cxqmax77kw4f32','{"kept":"internal","channel":"internal"}',1795128682119);
INSERT INTO events VALUES(83,'mail.sent','agent:main:second',NULL,'main','01m7v03sj3w1cxqmax77kw4f32','{"team":"dock","message_id":"idle-01m7v03sjm4mexnphw1c0q2xkc","from":"dora","to":"lead","type":"idle","summary":"dora is idle: available."}',1795128682121);
INSERT INTO events VALUES(84,'gate.kept','agent:main:second','01m7v03sm9a33a17kdp0st414j','main','01m7v03sj3w1cxqmax77kw4f32','{"kept":"internal","channel":"internal"}',1795128682171);
INSERT INTO events VALUES(85,'mail.sent','agent:main:second',NULL,'main','01m7v03wh6yat2hrm1pw8p1q6f','{"team":"dock","message_id":"01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora","from":"lead","to":"dora","type":"shutdown_request","summary":"the team is to end"}',1795128685102);
INSERT INTO events VALUES(86,'team.changed','agent:main:second',NULL,'main','01m7v03wh6yat2hrm1pw8p1q6f','{"team":"dock","change":"shutting_down"}',1795128685104);
INSERT INTO events VALUES(87,'gate.kept','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','01m7v03whet6fz0cekbgsmrx8x','expert','01m7v03wh6yat2hrm1pw8p1q6f','{"kept":"internal","channel":"internal"}',1795128685151);
INSERT INTO events VALUES(88,'round.begun',NULL,NULL,NULL,NULL,'{"round":"01m7v03wkydvqfhjh1zqz6d37x","agents":["main","ops"],"in_turn":true}',1795128685183);
INSERT INTO events VALUES(89,'message.waiting','agent:main:steered','01m7v03xkjp6ey96tw71823fsx','main',NULL,'{"waiting":1,"steers":true}',1795128686194);
INSERT INTO events VALUES(90,'turn.steered','agent:main:steered','01m7v03wm7qyytqwzmghqn4dpr','main','01m7v03wm7vbz6zb61xrwq6npq','{"skipped_calls":0,"tasks":1}',1795128688202);
INSERT INTO events VALUES(91,'message.waiting','agent:main:held','01m7v043f9tagcntyr22jnpta4','main',NULL,'{"waiting":1,"steers":true}',1795128692201);
INSERT INTO events VALUES(92,'message.waiting','agent:main:held','01m7v043f9tagcntyr22jnpta4','main',NULL,'{"waiting":2,"steers":true}',1795128692206);
INSERT INTO events VALUES(93,'delivery.queued','agent:main:webhook:desk:dm:down','01m7v043fnr1kfc89kx96f4k8n','main','01m7v043fnr1kfc89kx96f4k8q','{"channel":"webhook"}',1795128692220);
INSERT INTO events VALUES(94,'delivery.queued','agent:main:telegram:dm:8','01m7v044c8vs7bvznym6grw2ns','main','01m7v044c8vs7bvznym6grw2nv','{"channel":"telegram"}',1795128693185);
CREATE TABLE todos (
  session_key TEXT PRIMARY KEY REFERENCES sessions (session_key) ON DELETE CASCADE,
  items_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO todos VALUES('agent:main:cut','[{"text":"step one","state":"done"}]',1795128685194);
INSERT INTO todos VALUES('agent:main:main','[{"text":"paint the boat","state":"doing"},{"text":"buy rope","state":"open"}]',1795128663452);
INSERT INTO todos VALUES('agent:main:steered','[{"text":"long task","state":"open"}]',1795128688202);
CREATE TABLE spending (
  day INTEGER NOT NULL,
  purse TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  unknown_calls INTEGER NOT NULL,
  warned INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, purse)
) STRICT, WITHOUT ROWID;
INSERT INTO spending VALUES(20776,'instance',11068,11944000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:expert:delegate:c7da7d6be774875b8141b92e353129f0',124,136000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q',154,166000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0',298,322000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:made:web:dm:01m7v03ashrhsy9dfspv44nyty',119,131000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:chain',924,996000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:club',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:cut',131,143000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:family',1061,1145000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:fish',401,437000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:folded',1346,1466000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:held',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:lead',1819,1951000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:main',1512,1620000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:parent',277,301000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:second',1790,1910000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:steered',130,142000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:1586df04aabcb1b0e5844af08a707af4',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f',134,146000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:608cd6776b642e3598459cd7697cbb26',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:696d3766faa96b8e639eb5f83c66e302',131,143000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:a865d4218234ea07dee68c5200cb1199',132,144000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77',124,136000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:telegram:dm:42',0,0,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:telegram:dm:8',402,438000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:tool',129,141000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:waits',133,145000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:webhook:bell:dm:cust',130,142000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:webhook:desk:dm:cust',129,141000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:webhook:desk:dm:down',131,143000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:main:webhook:desk:dm:refused',123,135000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:ops:decided',257,281000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:ops:teammate:01m7v03eprwy0p4998x3yss5by',825,885000,0,0);
INSERT INTO spending VALUES(20776,'session:agent:ops:waiting',124,136000,0,0);
INSERT INTO spending VALUES(20776,'team:dock',298,322000,0,0);
INSERT INTO spending VALUES(20776,'team:site',979,1051000,0,0);
CREATE TABLE reservations (
  purse TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  node TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (purse, turn_id)
) STRICT, WITHOUT ROWID;
INSERT INTO reservations VALUES('instance','01m7v03pm1rxgqdep49qp9g6m0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,12845,21037000,1795128679047);
INSERT INTO reservations VALUES('instance','01m7v03wj6xjm7tw64wr2gcbwn','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,10921,19113000,1795128685129);
INSERT INTO reservations VALUES('instance','01m7v03wknvp6m92a671qtc5kf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11258,19450000,1795128685216);
INSERT INTO reservations VALUES('instance','01m7v03wkz9gy2ncr8m7md20kr','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,14660,22852000,1795128685228);
INSERT INTO reservations VALUES('instance','01m7v03wm3ncqqd2f0qzf71bj4','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13184,21376000,1795128685194);
INSERT INTO reservations VALUES('instance','01m7v03xkjp6ey96tw71823fsx','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13189,21381000,1795128688205);
INSERT INTO reservations VALUES('instance','01m7v041gn4k0kwdtk8n314tsq','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13048,21240000,1795128690200);
INSERT INTO reservations VALUES('instance','01m7v044c60d7zdy7jtgb6m319','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13136,21328000,1795128693130);
INSERT INTO reservations VALUES('instance','01m7v044dx93n7x3njxmdnfpkf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11120,19312000,1795128693228);
INSERT INTO reservations VALUES('session:agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62','01m7v03wj6xjm7tw64wr2gcbwn','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,10921,19113000,1795128685129);
INSERT INTO reservations VALUES('session:agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1','01m7v03pm1rxgqdep49qp9g6m0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,12845,21037000,1795128679047);
INSERT INTO reservations VALUES('session:agent:main:club','01m7v03wkz9gy2ncr8m7md20kr','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,14660,22852000,1795128685228);
INSERT INTO reservations VALUES('session:agent:main:cut','01m7v03wm3ncqqd2f0qzf71bj4','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13184,21376000,1795128685194);
INSERT INTO reservations VALUES('session:agent:main:held','01m7v041gn4k0kwdtk8n314tsq','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13048,21240000,1795128690200);
INSERT INTO reservations VALUES('session:agent:main:lead','01m7v03pm1rxgqdep49qp9g6m0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,12845,21037000,1795128679047);
INSERT INTO reservations VALUES('session:agent:main:parent','01m7v03wknvp6m92a671qtc5kf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11258,19450000,1795128685216);
INSERT INTO reservations VALUES('session:agent:main:steered','01m7v03xkjp6ey96tw71823fsx','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13189,21381000,1795128688205);
INSERT INTO reservations VALUES('session:agent:main:subagent:1586df04aabcb1b0e5844af08a707af4','01m7v03wknvp6m92a671qtc5kf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11258,19450000,1795128685216);
INSERT INTO reservations VALUES('session:agent:main:subagent:608cd6776b642e3598459cd7697cbb26','01m7v044dx93n7x3njxmdnfpkf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11120,19312000,1795128693228);
INSERT INTO reservations VALUES('session:agent:main:telegram:dm:42','01m7v044c60d7zdy7jtgb6m319','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,13136,21328000,1795128693130);
INSERT INTO reservations VALUES('session:agent:main:telegram:dm:8','01m7v044dx93n7x3njxmdnfpkf','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,11120,19312000,1795128693228);
INSERT INTO reservations VALUES('session:agent:main:waits','01m7v03wj6xjm7tw64wr2gcbwn','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,10921,19113000,1795128685129);
INSERT INTO reservations VALUES('team:site','01m7v03pm1rxgqdep49qp9g6m0','node-0bf29a2dbe5d/01m7v0378kv4aq1ypp6nd9v80r',1,12845,21037000,1795128679047);
CREATE TABLE schedules (
  schedule_id TEXT PRIMARY KEY,
  rule TEXT NOT NULL,
  last_due INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO schedules VALUES('heartbeat:main','6h UTC',1795128663324,1795128663324);
INSERT INTO schedules VALUES('morning','30 8 * * 1-5 Europe/Berlin',1795128663324,1795128663324);
INSERT INTO schedules VALUES('report','0 9 * * 1 UTC',1795128663620,1795128663620);
INSERT INTO schedules VALUES('tide','every 6h UTC',1795128663564,1795128663564);
CREATE TABLE drafts (
  turn_id TEXT NOT NULL,
  address_json TEXT NOT NULL,
  platform_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, address_json)
) STRICT, WITHOUT ROWID;
INSERT INTO drafts VALUES('01m7v044c60d7zdy7jtgb6m319','{"channel":"telegram","account":"main","peer":"42"}','8',1795128694332);
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  child_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  owner_key TEXT NOT NULL,
  owner_turn TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  hop INTEGER NOT NULL,
  task_json TEXT NOT NULL,
  reply_to_json TEXT NOT NULL,
  awaited_by TEXT,
  deadline INTEGER,
  is_deleted_after INTEGER NOT NULL,
  status TEXT NOT NULL,
  is_announced INTEGER NOT NULL DEFAULT 0,
  result_json TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
, caller_id TEXT NOT NULL DEFAULT '', archive_after_ms INTEGER, put_away_at INTEGER, held_code TEXT, audience_json TEXT, is_stopped INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO runs VALUES('01m7v03awrvexcqn1jrjceqq6g-call_66b1ddf60abb_0','subagent','agent:main:subagent:a865d4218234ea07dee68c5200cb1199','main','agent:main:family','01m7v03awrvexcqn1jrjceqq6g','01m7v03awrxwmw9ms3w61k30s8',1,'{"label":"first child","prompt":"DO [{\"say\": \"The child is done.\"}]\n\nAnswer with JSON alone that fits this schema:\n{\"type\":\"string\"}","tags":["a","b"],"schema":{"type":"string"},"asked_by":["web:default:agent:main:family"]}','[{"channel":"web","account":"default","peer":"agent:main:family"}]',NULL,1795129567080,0,'ok',1,'{"text":"The child is done.","tokens":132,"cost_usd":0.000144}',1795128667080,1795128667132,'main',3600000,1795132267132,NULL,NULL,0);
INSERT INTO runs VALUES('01m7v03ayek0hjak6hta5g58sy-call_57da251c8964_0','subagent','agent:main:subagent:4828c1ba62f7bfaf019bbeb5de4b337f','main','agent:main:chain','01m7v03ayek0hjak6hta5g58sy','01m7v03ayeyc3hzcvbpdarf5c0',1,'{"label":"chained","prompt":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","tags":[],"asked_by":["web:default:agent:main:chain"]}','[{"channel":"web","account":"default","peer":"agent:main:chain"}]',NULL,1795129567091,0,'ok',1,'{"text":"DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]","tokens":134,"cost_usd":0.000146}',1795128667091,1795128667139,'main',3600000,1795132267139,NULL,NULL,0);
INSERT INTO runs VALUES('01m7v03ayrsv9rwsfrjmhysj6b-call_4e2cd5822cc2_0','delegate','agent:expert:delegate:c7da7d6be774875b8141b92e353129f0','expert','agent:main:family','01m7v03ayrsv9rwsfrjmhysj6b','01m7v03ayrsv9rwsfrjmhysj6d',1,'{"label":"DO [{\"say\": \"The expert answer.\"}]","prompt":"DO [{\"say\": \"The expert answer.\"}]","tags":[],"asked_by":["web:default:agent:main:family"]}','[{"channel":"web","account":"default","peer":"agent:main:family"}]','01m7v03ayrsv9rwsfrjmhysj6b',1795128727100,0,'ok',1,'{"text":"The expert answer.","tokens":124,"cost_usd":0.000136}',1795128667100,1795128667144,'main',3600000,1795132267144,NULL,NULL,0);
INSERT INTO runs VALUES('01m7v03b03asskk3m8q6wdjb5f-call_f9abc6033a9a_0','subagent','agent:main:subagent:696d3766faa96b8e639eb5f83c66e302','main','agent:main:chain','01m7v03b03asskk3m8q6wdjb5f','01m7v03ayeyc3hzcvbpdarf5c0',2,'{"label":"second","prompt":"second of the chain","tags":[],"asked_by":["internal::","web:default:agent:main:chain"]}','[{"channel":"web","account":"default","peer":"agent:main:chain"}]',NULL,1795129567187,0,'ok',1,'{"text":"Noted: second of the chain","tokens":131,"cost_usd":0.000143}',1795128667187,1795128667234,'main',3600000,1795132267234,'automatic_budget_spent',NULL,0);
INSERT INTO runs VALUES('01m7v03b6rvpwr19xsfnnkaf9h-call_7824a8eb514a_0','subagent','agent:main:subagent:c6240b98749b2684fcc652da3c7b3e77','main','agent:main:fish','01m7v03b6rvpwr19xsfnnkaf9h','01m7v03b6ry8q18qm75t56akch',1,'{"label":"fishing","prompt":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","tags":[],"asked_by":["web:default:agent:main:fish"]}','[{"channel":"web","account":"default","peer":"agent:main:fish"}]',NULL,1795129567358,0,'ok',1,'{"text":"DO [{\"fail\": 400}] The catch is twelve fish.","tokens":124,"cost_usd":0.000136}',1795128667358,1795128667410,'main',3600000,1795132267410,NULL,NULL,0);
INSERT INTO runs VALUES('01m7v03whznsg81fgjq3693nma-call_b364413fe2da_0','delegate','agent:expert:delegate:c7774d43c75403f44064bc3378ca3a62','expert','agent:main:waits','01m7v03whznsg81fgjq3693nma','01m7v03whznsg81fgjq3693nmc',1,'{"label":"DO [{\"hang\": true, \"partial\": \"So far \"}]","prompt":"DO [{\"hang\": true, \"partial\": \"So far \"}]","tags":[],"asked_by":["web:default:agent:main:waits"]}','[{"channel":"web","account":"default","peer":"agent:main:waits"}]','01m7v03whznsg81fgjq3693nma',1795128985126,0,'running',0,NULL,1795128685126,NULL,'main',3600000,NULL,NULL,'{"session_key":"agent:main:waits","turn_id":"01m7v03whznsg81fgjq3693nma","addresses":[{"channel":"web","account":"default","peer":"agent:main:waits"}]}',0);
INSERT INTO runs VALUES('01m7v03wj2gsswq7cxxssw8hte-call_c15ca6d4f67c_0','subagent','agent:main:subagent:1586df04aabcb1b0e5844af08a707af4','main','agent:main:parent','01m7v03wj2gsswq7cxxssw8hte','01m7v03wj2zzsyr9ye1kxzcn0q',1,'{"label":"still running","prompt":"DO [{\"hang\": true}]","tags":[],"asked_by":["web:default:agent:main:parent"]}','[{"channel":"web","account":"default","peer":"agent:main:parent"}]',NULL,1795129585173,1,'running',0,NULL,1795128685173,NULL,'main',3600000,NULL,NULL,NULL,0);
INSERT INTO runs VALUES('01m7v044c8vs7bvznym6grw2ns-call_e15d42540bf2_0','subagent','agent:main:subagent:608cd6776b642e3598459cd7697cbb26','main','agent:main:telegram:dm:8','01m7v044c8vs7bvznym6grw2ns','01m7v044c8vs7bvznym6grw2nv',1,'{"label":"of a person","prompt":"Work for a paired person. DO [{\"hang\": true}]","tags":[],"asked_by":["telegram:main:8"]}','[{"channel":"telegram","account":"main","peer":"8"}]',NULL,1795129593181,0,'running',0,NULL,1795128693181,NULL,'main',3600000,NULL,NULL,NULL,0);
CREATE TABLE pairings (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  sender TEXT NOT NULL,
  sender_name TEXT,
  code TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved')),
  slot INTEGER CHECK (slot BETWEEN 1 AND 3),
  address_json TEXT NOT NULL,
  told_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (channel, account, sender),
  CHECK ((state = 'pending') = (slot IS NOT NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO pairings VALUES('telegram','main','7','Person 7','34BU56W6','pending',1,'{"channel":"telegram","account":"main","peer":"7"}',1795128670836,1795128670836,1795132270836);
INSERT INTO pairings VALUES('telegram','main','8','Person 8','FX35NQTN','approved',NULL,'{"channel":"telegram","account":"main","peer":"8"}',1795128670837,1795128670837,1795132270837);
CREATE TABLE rounds (
  round_id TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  parts_json TEXT,
  address_json TEXT NOT NULL,
  meta_json TEXT,
  priority INTEGER NOT NULL,
  in_turn INTEGER NOT NULL,
  see_previous INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO rounds VALUES('01m7v03wkydvqfhjh1zqz6d37x','What do all of you think? DO [{"hang": true}]','[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"}]','{"channel":"web","account":"default","peer":"agent:main:club"}',NULL,0,1,1,1,1795128685183);
CREATE TABLE seats (
  round_id TEXT NOT NULL REFERENCES rounds (round_id) ON DELETE CASCADE,
  seat INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  turn_id TEXT,
  PRIMARY KEY (round_id, seat)
) STRICT, WITHOUT ROWID;
INSERT INTO seats VALUES('01m7v03wkydvqfhjh1zqz6d37x',0,'main','agent:main:club','01m7v03wkz9gy2ncr8m7md20kr');
INSERT INTO seats VALUES('01m7v03wkydvqfhjh1zqz6d37x',1,'ops','agent:ops:club',NULL);
CREATE TABLE teams (
  team_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'shutting_down', 'shutdown')),
  lead_key TEXT NOT NULL,
  lead_agent TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  reply_to_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO teams VALUES('01m7v03enx0sh53n4sd1cmd5t1','site','Build the page','general-purpose','active','agent:main:lead','main','01m7v03enxs02p3w3r5d5fqnpy','[]',1795128670909,1795128670909);
INSERT INTO teams VALUES('01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','dock','By tools','general-purpose','shutting_down','agent:main:second','main','01m7v03wh6yat2hrm1pw8p1q6f','[{"channel":"web","account":"default","peer":"agent:main:second"}]',1795128682056,1795128685102);
CREATE TABLE members (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  role TEXT NOT NULL,
  capabilities_json TEXT NOT NULL,
  color TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'closed', 'lost')),
  joined_at INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL,
  ended_turn TEXT,
  ended_badly INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO members VALUES('01m7v03enx0sh53n4sd1cmd5t1','ann','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by','ops','painter','["css"]','blue','active',1795128670937,1795128674044,NULL,0);
INSERT INTO members VALUES('01m7v03enx0sh53n4sd1cmd5t1','bob','agent:expert:teammate:01m7v03eq0tyqb9ke1gx60qn9q','expert','member','[]','green','active',1795128670946,1795128676050,NULL,0);
INSERT INTO members VALUES('01m7v03enx0sh53n4sd1cmd5t1','carl','agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1','made','member','["sql"]','yellow','active',1795128670957,1795128670957,NULL,0);
INSERT INTO members VALUES('01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','dora','agent:expert:teammate:01m7v03sj3w1cxqmax77kw4f30-call_0efab1f6048b_0','expert','member','[]','blue','active',1795128682068,1795128685151,NULL,0);
CREATE TABLE letters (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  letter_id TEXT NOT NULL UNIQUE,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  summary TEXT NOT NULL,
  request_id TEXT,
  approve INTEGER,
  reason TEXT,
  state TEXT NOT NULL CHECK (state IN ('queued', 'in_prompt', 'read', 'undeliverable')),
  turn_id TEXT,
  created_at INTEGER NOT NULL,
  read_at INTEGER
, is_copied INTEGER NOT NULL DEFAULT 1, shown_at INTEGER) STRICT;
INSERT INTO letters VALUES(1,'01m7v03enx0sh53n4sd1cmd5t1-1-1','01m7v03enx0sh53n4sd1cmd5t1','team','ann','task','Task #1 is free: Draw the header. Claim it with TaskClaim if you can do it.','Task #1 is free: Draw the header. Claim it with...',NULL,NULL,NULL,'read','01m7v03eqqxpxj1bwp6sm0ah37',1795128670967,1795128670977,1,1795128670975);
INSERT INTO letters VALUES(2,'idle-01m7v03eqqxpxj1bwp6sm0ah37','01m7v03enx0sh53n4sd1cmd5t1','ann','lead','idle','ann is idle: available.','ann is idle: available.',NULL,NULL,'available','read','01m7v03er4xwt12rcxjqxb57s4',1795128670980,1795128671032,1,1795128671029);
INSERT INTO letters VALUES(3,'01m7v03enx0sh53n4sd1cmd5t1-4-4','01m7v03enx0sh53n4sd1cmd5t1','team','ann','task','Task #4 is free: Write the text. Claim it with TaskClaim if you can do it.','Task #4 is free: Write the text. Claim it with...',NULL,NULL,NULL,'read','01m7v03erdjrefqq739h5s0h96',1795128670989,1795128670997,1,1795128670993);
INSERT INTO letters VALUES(4,'01m7v03enx0sh53n4sd1cmd5t1-5-5','01m7v03enx0sh53n4sd1cmd5t1','team','bob','task','Task #5 is free: Impossible. Claim it with TaskClaim if you can do it.','Task #5 is free: Impossible. Claim it with TaskClaim if...',NULL,NULL,NULL,'read','01m7v03ergq1w5ahsyre17f4f3',1795128670992,1795128671044,1,1795128671040);
INSERT INTO letters VALUES(5,'01m7v03enx0sh53n4sd1cmd5t1-6-6','01m7v03enx0sh53n4sd1cmd5t1','team','ann','task','Task #6 is free: Under way. Claim it with TaskClaim if you can do it.','Task #6 is free: Under way. Claim it with TaskClaim...',NULL,NULL,NULL,'read','01m7v03erqqtzkhxnzbr7sm29x',1795128670999,1795128671007,1,1795128671004);
INSERT INTO letters VALUES(6,'idle-01m7v03erqqtzkhxnzbr7sm29x','01m7v03enx0sh53n4sd1cmd5t1','ann','lead','idle','ann is idle: waiting. It holds a task, and goes on when somebody writes to it.','ann is idle: waiting. It holds a task, and goes...',NULL,NULL,'waiting','read','01m7v03er4xwt12rcxjqxb57s4',1795128671011,1795128671032,1,1795128671029);
INSERT INTO letters VALUES(7,'01m7v03enx0sh53n4sd1cmd5t1-8-2','01m7v03enx0sh53n4sd1cmd5t1','team','ann','task','Task #2 is free: Put it on the page. Claim it with TaskClaim if you can do it.','Task #2 is free: Put it on the page. Claim...',NULL,NULL,NULL,'read','01m7v03es5wwhv4vjhwazgdfmv',1795128671013,1795128671063,1,1795128671060);
INSERT INTO letters VALUES(8,'idle-01m7v03ergq1w5ahsyre17f4f3','01m7v03enx0sh53n4sd1cmd5t1','bob','lead','idle','bob is idle: available.','bob is idle: available.',NULL,NULL,'available','read','01m7v03es5wwhv4vjhwazgdfmz',1795128671045,1795128671083,1,1795128671081);
INSERT INTO letters VALUES(9,'idle-01m7v03es5wwhv4vjhwazgdfmv','01m7v03enx0sh53n4sd1cmd5t1','ann','lead','idle','ann is idle: waiting. It holds a task, and goes on when somebody writes to it.','ann is idle: waiting. It holds a task, and goes...',NULL,NULL,'waiting','read','01m7v03es5wwhv4vjhwazgdfmz',1795128671065,1795128671083,1,1795128671081);
INSERT INTO letters VALUES(10,'01m7v03hqdc2gn0wmbz8rdng7c-ann','01m7v03enx0sh53n4sd1cmd5t1','operator','ann','message','Please read this. DO [{"say": "read"}]','Please read this.',NULL,NULL,NULL,'read','01m7v03hqetepbq8adtrn0mxhy',1795128674030,1795128674044,1,1795128674039);
INSERT INTO letters VALUES(11,'idle-01m7v03hqetepbq8adtrn0mxhy','01m7v03enx0sh53n4sd1cmd5t1','ann','lead','idle','ann is idle: waiting. It holds a task, and goes on when somebody writes to it.','ann is idle: waiting. It holds a task, and goes...',NULL,NULL,'waiting','read','01m7v03hqyk1ja0tqf789z0d2a',1795128674046,1795128674100,1,1795128674098);
INSERT INTO letters VALUES(12,'01m7v03kp5prtwvrajpbwh3yvg-bob','01m7v03enx0sh53n4sd1cmd5t1','operator','bob','message','This fails. DO [{"fail": 400}]','This fails.',NULL,NULL,NULL,'queued',NULL,1795128676037,NULL,1,1795128676042);
INSERT INTO letters VALUES(13,'idle-01m7v03kp5prtwvrajpbwh3yvk','01m7v03enx0sh53n4sd1cmd5t1','bob','lead','idle','bob is idle: failed. (provider_failed) It is tried again while mail or a task waits for it.','bob is idle: failed. (provider_failed) It is tried again while...',NULL,NULL,'failed','read','01m7v03kpkxfycg1keb16rnrrh',1795128676051,1795128676100,1,1795128676097);
INSERT INTO letters VALUES(14,'01m7v03pm1nyjacnsfqvz3yz3n-carl','01m7v03enx0sh53n4sd1cmd5t1','operator','carl','message','This hangs. DO [{"hang": true}]','This hangs.',NULL,NULL,NULL,'in_prompt','01m7v03pm1rxgqdep49qp9g6m0',1795128679041,NULL,1,1795128679046);
INSERT INTO letters VALUES(15,'01m7v03sj05cbp0qn8p707nr8z-carl','01m7v03enx0sh53n4sd1cmd5t1','operator','carl','message','This is unread.','This is unread.',NULL,NULL,NULL,'queued',NULL,1795128682049,NULL,1,NULL);
INSERT INTO letters VALUES(16,'01m7v03sj3w1cxqmax77kw4f30-call_a72f282adb42_0-dora','01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','lead','dora','message','Hello Dora','hello',NULL,NULL,NULL,'read','01m7v03sjm4mexnphw1c0q2xkc',1795128682088,1795128682119,1,1795128682117);
INSERT INTO letters VALUES(17,'idle-01m7v03sjm4mexnphw1c0q2xkc','01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','dora','lead','idle','dora is idle: available.','dora is idle: available.',NULL,NULL,'available','read','01m7v03sm9a33a17kdp0st414j',1795128682121,1795128682171,1,1795128682169);
INSERT INTO letters VALUES(18,'01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora','01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','lead','dora','shutdown_request',replace('The team is to end. done\nFinish what you are doing, then answer with SendMessage, type shutdown_response, request_id 01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora-stop, approve true or false, and a reason if false.','\n',char(10)),'the team is to end','01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora-stop',NULL,'done','read','01m7v03whet6fz0cekbgsmrx8x',1795128685102,1795128685151,1,1795128685148);
CREATE TABLE told (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  PRIMARY KEY (team_id, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',1);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',2);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',3);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',4);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',5);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',6);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',7);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',8);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',9);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',10);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',11);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',12);
INSERT INTO told VALUES('01m7v03enx0sh53n4sd1cmd5t1',13);
INSERT INTO told VALUES('01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0',1);
CREATE TABLE shutdown_requests (
  request_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  member TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  answer_json TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO shutdown_requests VALUES('01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0-dora-stop','01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0','dora',1795128745102,NULL,1795128685102);
CREATE TABLE setbacks (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  since INTEGER NOT NULL,
  code TEXT NOT NULL,
  failures INTEGER NOT NULL,
  retry_at INTEGER,
  PRIMARY KEY (team_id, name)
) STRICT, WITHOUT ROWID;
INSERT INTO setbacks VALUES('01m7v03enx0sh53n4sd1cmd5t1','bob',1795128676050,'provider_failed',1,1795128706050);
CREATE TABLE holders (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  PRIMARY KEY (channel, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE errands (
  errand_id TEXT PRIMARY KEY,
  job_json TEXT NOT NULL,
  -- The agent that made it; null where a person did.
  made_by TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
, asked_by TEXT) STRICT, WITHOUT ROWID;
INSERT INTO errands VALUES('asleep','{"id":"asleep","schedule":"at 2030-01-01 09:00","message":"Later.","catch_up":"skip","enabled":false}',NULL,1795128663621,1795128663621,NULL);
INSERT INTO errands VALUES('report','{"id":"report","schedule":"0 9 * * 1","agent":"ops","message":"Write the report.","deliver_to":{"channel":"webhook","account":"desk","peer":"boss"},"catch_up":"once","enabled":true}',NULL,1795128663620,1795128663620,NULL);
INSERT INTO errands VALUES('tide','{"id":"tide","schedule":"every 6h","agent":"main","message":"Look at the tide.","catch_up":"once","enabled":true}','main',1795128663564,1795128663564,'["web:default:agent:main:main"]');
CREATE TABLE media (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
  media_type TEXT NOT NULL,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO media VALUES('2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20','image/png',X'89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63f8cfc0000003010100f70341430000000049454e44ae426082',1795128685183);
CREATE TABLE media_uses (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  hash TEXT NOT NULL REFERENCES media (hash),
  PRIMARY KEY (message_id, hash)
) STRICT, WITHOUT ROWID;
INSERT INTO media_uses VALUES('01m7v037d8qz6zmkqpy7d8q3wz','2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
INSERT INTO media_uses VALUES('01m7v03wkz9gy2ncr8m7md20kq','2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
CREATE TABLE media_rounds (
  round_id TEXT NOT NULL REFERENCES rounds (round_id) ON DELETE CASCADE,
  hash TEXT NOT NULL REFERENCES media (hash),
  PRIMARY KEY (round_id, hash)
) STRICT, WITHOUT ROWID;
INSERT INTO media_rounds VALUES('01m7v03wkydvqfhjh1zqz6d37x','2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
CREATE TABLE shutdown_calls (
  call_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO shutdown_calls VALUES('01m7v03wh6yat2hrm1pw8p1q6d-call_7a5a8e6feb00_0','01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('jobs',67);
INSERT INTO sqlite_sequence VALUES('usage',73);
INSERT INTO sqlite_sequence VALUES('events',94);
INSERT INTO sqlite_sequence VALUES('letters',18);
INSERT INTO sqlite_sequence VALUES('backlog',1);
CREATE INDEX sessions_agent ON sessions (agent_id, session_key);
CREATE INDEX sessions_owner ON sessions (owner_session_key) WHERE owner_session_key IS NOT NULL;
CREATE UNIQUE INDEX messages_ticket ON messages (session_key, ticket);
CREATE UNIQUE INDEX messages_idempotency ON messages (session_key, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX messages_turn ON messages (turn_id, ticket);
CREATE UNIQUE INDEX jobs_one_running ON jobs (session_key) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_one_queued ON jobs (session_key) WHERE state = 'queued';
CREATE INDEX jobs_ready ON jobs (lane, agent_id, priority, seq) WHERE state = 'queued' AND held = 0;
CREATE INDEX jobs_running ON jobs (lane, agent_id, started_at) WHERE state = 'running';
CREATE INDEX jobs_session ON jobs (session_key, seq);
CREATE INDEX backlog_waiting ON backlog (session_key, seq) WHERE taken_by IS NULL;
CREATE INDEX backlog_taken ON backlog (taken_by) WHERE taken_by IS NOT NULL;
CREATE INDEX ingress_age ON ingress (created_at);
CREATE INDEX outbox_pending ON outbox (next_at) WHERE state = 'pending';
CREATE INDEX outbox_sending ON outbox (lease_until) WHERE state = 'sending';
CREATE INDEX outbox_order ON outbox (session_key, id) WHERE state IN ('pending', 'sending');
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE state = 'pending';
CREATE INDEX usage_time ON usage (created_at);
CREATE INDEX events_session ON events (session_key, seq) WHERE session_key IS NOT NULL;
CREATE INDEX events_kind ON events (kind, seq);
CREATE INDEX sessions_recent ON sessions (updated_at, session_key);
CREATE INDEX usage_turn ON usage (turn_id);
CREATE INDEX reservations_turn ON reservations (turn_id);
CREATE UNIQUE INDEX runs_child ON runs (child_key) WHERE status = 'running';
CREATE INDEX runs_owner ON runs (owner_key, run_id);
CREATE INDEX runs_deadline ON runs (deadline) WHERE status = 'running';
CREATE INDEX runs_awaited ON runs (awaited_by) WHERE awaited_by IS NOT NULL AND is_announced = 0;
CREATE UNIQUE INDEX pairings_slot ON pairings (channel, account, slot) WHERE state = 'pending';
CREATE UNIQUE INDEX pairings_code ON pairings (code) WHERE state = 'pending';
CREATE INDEX rounds_open ON rounds (round_id) WHERE is_open = 1;
CREATE INDEX rounds_age ON rounds (created_at);
CREATE INDEX usage_session ON usage (session_key);
CREATE INDEX runs_put_away ON runs (put_away_at) WHERE put_away_at IS NOT NULL;
CREATE INDEX runs_held ON runs (created_at, run_id) WHERE held_code IS NOT NULL;
CREATE INDEX runs_age ON runs (owner_key, created_at, run_id);
CREATE INDEX runs_last ON runs (child_key, created_at);
CREATE UNIQUE INDEX teams_name ON teams (name) WHERE status <> 'shutdown';
CREATE INDEX teams_lead ON teams (lead_key);
CREATE UNIQUE INDEX members_session ON members (session_key);
CREATE INDEX letters_open ON letters (team_id, recipient, seq) WHERE state IN ('queued', 'in_prompt');
CREATE INDEX letters_turn ON letters (turn_id) WHERE state = 'in_prompt';
CREATE INDEX letters_team ON letters (team_id, seq);
CREATE UNIQUE INDEX shutdown_requests_member ON shutdown_requests (team_id, member);
CREATE INDEX setbacks_due ON setbacks (retry_at) WHERE retry_at IS NOT NULL;
CREATE INDEX letters_uncopied ON letters (team_id, seq) WHERE is_copied = 0;
CREATE INDEX runs_caller ON runs (caller_id, kind) WHERE status = 'running';
CREATE INDEX media_uses_hash ON media_uses (hash);
CREATE INDEX media_rounds_hash ON media_rounds (hash);
COMMIT;
PRAGMA user_version=19;
