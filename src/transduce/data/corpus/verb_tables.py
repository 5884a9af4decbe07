"""The verbs, by what they need beside their subject. One English verb in its frame has just one German one.

A line reads ``english = german : objects ; options``. English: base (``+`` joins a particle, ``~`` a
preposition), then past, participle and -ing form where they are irregular. German: ``sich`` for a reflexive
verb, infinitive (a hyphen after a separable prefix), ``du/er`` forms where the vowel changes, participle,
``sein`` where the perfect takes it, ``~preterite`` where the past is told by it and not by the perfect.
Objects: kinds of nouns or single nouns. Options:

- ``<kinds`` another subject than persons,
- ``@places`` a place may be added, ``manner`` words of that group may be added,
- ``habit`` no progressive; ``state`` only simple present and past, never a command; ``event`` no
  progressive, no modal, no command,
- ``same`` past and present look alike in English, so the simple present is left out,
- ``hour`` happens at times of day, not in months.
"""

from __future__ import annotations

INTRANSITIVE = """
sleep slept slept = schlafen schläfst/schläft geschlafen : ; <person,animal @where calm hour
work = arbeiten gearbeitet : ; @work busy
sing sang sung = singen gesungen : ; @where voice
dance = tanzen getanzt : ; @party glad
laugh = lachen gelacht : ; voice hour
cry = weinen geweint : ; voice hour
smile = lächeln gelächelt : ; hour
swim swam swum swimming = schwimmen geschwommen sein : ; @water move
run ran run running = rennen gerannt sein : ; <person,animal @where move
wait = warten gewartet : ; @where calm hour
rest = sich aus-ruhen ausgeruht : ; @where hour
hurry = sich beeilen beeilt : ; hour
sit+down sat sat sitting = sich hin-setzen hingesetzt : ; hour
get+up got got getting = auf-stehen aufgestanden sein : ; hour
fall+asleep fell fallen = ein-schlafen schläfst/schläft eingeschlafen sein : ; hour
wake+up woke woken = auf-wachen aufgewacht sein : ; hour
come+back came come = zurück-kommen zurückgekommen sein :
go+out went gone = aus-gehen ausgegangen sein : ; hour
go+away went gone = weg-gehen weggegangen sein : ; hour
watch+television = fern-sehen siehst/sieht ferngesehen : ; @home hour
go+shopping went gone = ein-kaufen eingekauft : ; @trade hour
bark = bellen gebellt : ; <dog @where hour
arrive = an-kommen angekommen sein : ; <train,bus,ship,aeroplane hour
depart = ab-fahren fährst/fährt abgefahren sein : ; <train,bus,ship,tram hour
begin began begun beginning = an-fangen fängst/fängt angefangen : ; <film,game,concert,lesson,party hour
ring rang rung = klingeln geklingelt : ; <telephone hour
shine shone shone = scheinen geschienen : ; <sun hour
"""

WEATHER = """
rain = regnen geregnet : ; <it hour
snow = schneien geschneit : ; <it hour
"""

ACCUSATIVE = """
see saw seen = sehen siehst/sieht gesehen : person animal building vehicle thing ; habit
buy bought bought = kaufen gekauft : food dish drink clothes reading thing vehicle furniture ; @trade
sell sold sold = verkaufen verkauft : food dish clothes vehicle furniture thing ; @trade
read read read = lesen liest/liest gelesen : reading ; same @desk calm
write wrote written = schreiben geschrieben : letter story poem report message novel ; @desk
eat ate eaten = essen isst/isst gegessen : food dish ; @meal hour
drink drank drunk = trinken getrunken : drink ; @meal hour
cook = kochen gekocht : egg potato soup rice meat ; @meal hour
cut cut cut cutting = schneiden geschnitten : bread cheese meat cake apple tomato ; same hour
find found found = finden gefunden : thing clothes ; event @where
look~for = suchen gesucht : thing clothes animal ; @where
lose lost lost = verlieren verlierst/verliert verloren : key umbrella ball camera bag clothes ; event @where
need = brauchen gebraucht ~brauchte : thing clothes vehicle ; state
have had had = haben hast/hat gehabt ~hatte : thing clothes vehicle thought ; state
love = lieben geliebt ~liebte : person ; state
know knew known = kennen gekannt ~kannte : person building thought reading ; state
understand understood understood = verstehen verstanden : person thought reading ; state
meet met met = treffen triffst/trifft getroffen : person ; @where
visit = besuchen besucht : person museum castle school city village island
ask = fragen gefragt : person ; hour
hear heard heard = hören gehört : person animal song ; habit
carry = tragen trägst/trägt getragen : bag suitcase basket box picture furniture ; move
wash = waschen wäschst/wäscht gewaschen : shirt dress skirt car plate cup
open = öffnen geöffnet : opening bottle box suitcase letter cupboard ; care hour
close = schließen geschlossen : opening box suitcase book cupboard ; care hour
repair = reparieren repariert : vehicle clock telephone lamp computer ; care
forget forgot forgotten forgetting = vergessen vergisst/vergisst vergessen : key thought clothes ; event
steal stole stolen = stehlen stiehlst/stiehlt gestohlen : thing vehicle clothes ; event
clean = putzen geputzt : opening room shoe mirror ; care
draw drew drawn = zeichnen gezeichnet : animal building flower ; care
paint = malen gemalt : picture animal building flower
use = benutzen benutzt : computer telephone camera map pencil umbrella bicycle
hide hid hidden = verstecken versteckt : key present letter thing ; @room
feed fed fed = füttern gefüttert : animal ; hour
photograph = fotografieren fotografiert : person animal building place
hug hugged hugged hugging = umarmen umarmt : person ; hour
learn = lernen gelernt : word song poem
call = an-rufen angerufen : person ; hour
pick+up = ab-holen abgeholt : person ; hour
invite = ein-laden lädst/lädt eingeladen : person
look~at = an-sehen siehst/sieht angesehen : picture map building film
put+on put put putting = an-ziehen angezogen : clothes ; same hour
take+off took taken = aus-ziehen ausgezogen : clothes ; hour
switch+on = ein-schalten eingeschaltet : lamp computer telephone ; hour
switch+off = aus-schalten ausgeschaltet : lamp computer telephone ; hour
tidy+up = auf-räumen aufgeräumt : room shop cupboard
bring+along brought brought = mit-bringen mitgebracht : thing food dish drink
throw+away threw thrown = weg-werfen wirfst/wirft weggeworfen : thing reading
write+down wrote written = auf-schreiben aufgeschrieben : thought story poem
prepare = vor-bereiten vorbereitet : party lesson journey concert
get_to_know got got getting = kennen-lernen kennengelernt : person ; event
"""

DATIVE = """
help = helfen hilfst/hilft geholfen : person ; @where
thank = danken gedankt : person ; hour
follow = folgen gefolgt sein : person animal ; move hour
answer = antworten geantwortet : person ; hour
trust = vertrauen vertraut ~vertraute : person ; state
congratulate = gratulieren gratuliert : person
believe = glauben geglaubt ~glaubte : person ; state
listen~to = zu-hören zugehört : person ; hour
belong~to = gehören gehört ~gehörte : person ; <thing,vehicle,clothes,building state
"""

GIVE = """
give gave given = geben gibst/gibt gegeben : thing reading food clothes
show showed shown = zeigen gezeigt : thing reading picture building
send sent sent = schicken geschickt : reading flower present picture
lend lent lent = leihen geliehen : thing vehicle book clothes
bring brought brought = bringen gebracht : thing food dish drink ; hour
explain = erklären erklärt : thought map
"""

# Before the objects: the German preposition and its case.
PREPOSITIONAL = """
wait~for = warten gewartet : auf A person bus train letter answer ; @where hour
think~of thought thought = denken gedacht : an A person event thought
speak~with spoke spoken = sprechen sprichst/spricht gesprochen : mit D person ; @where voice
speak~about spoke spoken = sprechen sprichst/spricht gesprochen : über A person thought reading event
dream~of = träumen geträumt : von D person journey house island
laugh~about = lachen gelacht : über A person story mistake ; hour
play~with = spielen gespielt : mit D child animal doll ball ; @where
dance~with = tanzen getanzt : mit D person ; @party
argue~with = streiten gestritten : mit D person ; @where
look~after = sich kümmern gekümmert : um A person animal garden
remember = sich erinnern erinnert : an A person event thought ; habit
look_forward~to = sich freuen gefreut : auf A event present letter
complain~about = sich beschweren beschwert : über A person room hotel
"""

# Where somebody or something is.
PLACE = """
live = wohnen gewohnt ~wohnte : home ; state
stay = bleiben geblieben sein : where
sit sat sat sitting = sitzen gesessen : seat ; hour
stand stood stood = stehen gestanden : ground ; hour
lie lay lain lying = liegen gelegen : surface ; <thing,reading same
"""

# Where to.
DIRECTION = """
go went gone = gehen gegangen sein : to to into home
walk = laufen läufst/läuft gelaufen sein : to into
travel travelled travelled travelling = fahren fährst/fährt gefahren sein : to town by
fly flew flown = fliegen geflogen sein : town
come came come = kommen gekommen sein : to
"""

# Something somewhere.
PUT = """
put put put putting = legen gelegt : thing reading clothes ; same hour
place = stellen gestellt : glass cup bottle plate lamp basket ; hour
"""

# A subordinate clause or an infinitive with its comma.
THAT = """
know knew known = wissen weißt/weiß gewusst ~wusste : ; state
say said said = sagen gesagt :
believe = glauben geglaubt ~glaubte : ; state
hope = hoffen gehofft : ; state
think thought thought = denken gedacht : ; state
hear heard heard = hören gehört : ; event
"""
WHETHER = """
know knew known = wissen weißt/weiß gewusst ~wusste : ; state
ask = fragen gefragt :
wonder = sich fragen gefragt :
"""
INFINITIVE = """
try = versuchen versucht :
begin began begun beginning = an-fangen fängst/fängt angefangen :
hope = hoffen gehofft : ; state
promise = versprechen versprichst/verspricht versprochen : ; event
forget forgot forgotten forgetting = vergessen vergisst/vergisst vergessen : ; event
decide = beschließen beschlossen : ; event
refuse = sich weigern geweigert : ; event
"""
